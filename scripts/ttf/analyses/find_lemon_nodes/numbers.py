"""The numbers of lemon nodes that the report's prose uses."""

import polars as pl

from ttf.analyses.find_lemon_nodes.excess import typical_detectable
from ttf.inputs import Inputs
from ttf.numbers.metrics import Metrics, ends


def numbers(metrics: Metrics, given: Inputs) -> None:
    """How many nodes were tested and how many are lemons, the worst of them; how many failures are attributed to nodes;

    the ratio that would have been found; the fleet with and without the lemons.
    """
    nodes, effect, source = given["lemon_nodes"], given["lemon_effect"], "tables/lemon_nodes.csv"
    tested = nodes.filter(pl.col("p_value").is_not_null())
    lemons = tested.filter("lemon")
    metrics.put("lemons.nodes", nodes.height, "nodes", source)
    metrics.put("lemons.tested", tested.height, "nodes", source, nodes.height)
    metrics.put("lemons.lemons", lemons.height, "nodes", source, tested.height)
    metrics.put("lemons.failures", int(nodes["failures"].sum()), "failures", source, nodes.height)
    metrics.put("lemons.counted", int(tested["counted"].sum()), "failures", source, tested.height)
    for row in nodes.head(1).iter_rows(named=True):
        metrics.put("lemons.basis", row["basis"], "label", source)
        failures = row["window_failures"]
        metrics.put("lemons.window_failures", failures, "failures", source, failures)
        metrics.put("lemons.unattributed", failures - row["attributed_failures"], "failures", source, failures)
        if failures:
            metrics.put("lemons.attributed_share", row["attributed_share"], "share", source, failures)
        if row["window_to_s"] is not None:
            metrics.put("lemons.window_s", row["window_to_s"] - row["window_from_s"], "s", source)
    for row in tested.head(1).iter_rows(named=True):
        metrics.put("lemons.first.node", row["node"], "label", source)
        names = ("counted", "expected", "rate_ratio", "ci_low", "ci_high", "q_value", "q_spread", "ordinary_cv")
        metrics.put_row("lemons.first", row, dict.fromkeys(names, "1"), source, row["trials"] or row["failures"])
    metrics.put("lemons.detectable_ratio", typical_detectable(tested), "1", source, tested.height)
    ranked = nodes.drop_nulls("likely_ratio").sort("likely_ratio", "node", descending=[True, False])
    for row in ranked.head(1).iter_rows(named=True):
        metrics.put("lemons.likely.node", row["node"], "label", source)
        units = {"likely_failures": "failures", "likely_ratio": "1"}
        metrics.put_row("lemons.likely", row, units, source, metrics["lemons.unattributed"]["value"])
    if lemons.height:
        share = lemons["failures"].sum() / max(nodes["failures"].sum(), 1)
        metrics.put("lemons.share_of_failures", share, "share", source, int(nodes["failures"].sum()))
        metrics.put("lemons.share_of_nodes", lemons.height / nodes.height, "share", source, nodes.height)
    source = "tables/lemon_effect.csv"
    for name, row in zip(("same", "split"), effect.iter_rows(named=True), strict=True):
        metrics.put(f"lemons.{name}.lemons", row["lemons"], "nodes", source, row["nodes"])
        if row["mttf_ratio"] is not None:
            times = {"mttf_s": "s"} | ends("s", "_s")
            metrics.put_row(f"lemons.{name}", row, times, source, row["failures"])
            of_ends = (f"ci_{end}{kind}_without_s" for kind in ("", "_clustered") for end in ("low", "high"))
            times = dict.fromkeys(("mttf_without_s", *of_ends), "s")
            metrics.put_row(f"lemons.{name}", row, times, source, row["failures_without"])
            metrics.put(f"lemons.{name}.mttf_ratio", row["mttf_ratio"], "1", source, row["failures"])

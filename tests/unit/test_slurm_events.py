"""Node events of Slurm: dumps as they come become records of outages and the time in which nodes were watched."""

import numpy as np
import polars as pl
import pytest
import yaml
from of_formats import FILES, FORMATS, raw_schemas
from ttf.formats.protocol import Source, code_of
from ttf.formats.sacct import sample, sample_events
from ttf.formats.slurm_events.read import READERS
from ttf.ingest import ingest
from ttf.outages.causes import with_rules
from ttf.outages.records import exposure_of, outages_of

RULES = yaml.safe_load((FILES["sacct"].parents[4] / "config/outage_causes.yaml").read_text())["rules"]
NODES = "Cluster|NodeName|TimeStart|TimeEnd|State|StateRaw|Reason|User"
CLUSTER = "Cluster|Cluster Nodes|TimeStart|TimeEnd|TRES|Reason"
REGISTERED = "c|n[1-3]|0|Unknown|cpu=3|Cluster Registered TRES"
T = 1_700_000_000


def source_of(folder, *dumps, limit=0.0, **meaning):
    """What a trace of these dumps is derived from; and the row account and the quarantine."""
    folder.mkdir(exist_ok=True)
    files = []
    for number, dump in enumerate(dumps):
        files.append(folder / f"{number}.txt")
        files[-1].write_bytes(dump if isinstance(dump, bytes) else dump.encode())
    account, aside = ingest({"node_event": files}, raw_schemas("slurm_events"), folder, limit, READERS)
    return Source({"node_event": pl.scan_parquet(folder / "node_event.parquet")}, meaning), account, aside


def derived(source, rules=RULES, exposed=True):
    """(outages, records, exposure) as the rule derive_outages makes them."""
    format_ = code_of(FORMATS["slurm_events"]["code"])
    exposure = exposure_of("t", format_.exposure(source)) if exposed else None
    return *outages_of("t", with_rules(format_.outage_records(source), rules), exposure), exposure


def dump(*rows, header=NODES):
    return "\n".join([header, *rows]) + "\n"


def found(tmp_path, *dumps, columns=("unit_id", "start_s", "end_s", "cause"), **how):
    source, *_ = source_of(tmp_path / "d", *dumps)
    return derived(source, exposed=False, **how)[0].select(columns).rows()


# ---- the sample: the truth is known ----


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("events")
    sample.write_sample(folder / "new", 4_000)
    names = ("node_events", "cluster_events")
    source, account, _ = source_of(
        folder / "d", *((folder / "new" / sample.FILES[name]).read_bytes() for name in names)
    )
    planned, nodes = sample.plan(4_000, 2025), sample.count_of_nodes(4_000)
    failures, events = sample.node_failures(np.random.default_rng([2025, 1]), nodes, sample.Hazard())
    runs = sample.runs_of(planned, nodes, failures)
    return source, account, sample.outages_of_nodes(2025, runs, failures, events, nodes), runs


def test_the_outages_of_the_sample_are_found_again(written):
    source, account, true, _ = written
    outages, records, exposure = derived(source)
    wanted = sorted(
        (
            sample.node_name(outage.node),
            outage.start_s,
            outage.end_s if outage.end_s < sample.END_S else None,
            outage.planned,
            outage.rows[0].reason.replace("|", "¦"),
            outage.rows[-1].reason.replace("|", "¦"),
        )
        for outage in true
    )
    assert account["rows_quarantined"].sum() == 0
    told = records.select("unit_id", "start_s", "end_s", "planned", "symptom", "cause").sort("unit_id", "start_s")
    assert told.rows() == wanted
    assert outages.height == len(wanted)
    assert outages["counted"].all()
    is_open = outages.filter(pl.col("end_s").is_null())
    assert is_open.height >= 2
    assert set(is_open["seen_until_s"]) == {sample_events_end(source)}
    # Watched from the first day, but for the moments in which there was no controller.
    assert exposure["unit_id"].n_unique() == 240
    assert exposure.height == 480
    away = (exposure["until_s"] - exposure["from_s"]).sum() + 240 * sample_events.AWAY_S
    assert away == 240 * (sample_events_end(source) - sample.FIRST_S)


def sample_events_end(source):
    return source.raw["node_event"].select(pl.max_horizontal("start_s", "end_s").max()).collect().item()


def test_nothing_runs_on_a_node_of_the_sample_that_is_down(written):
    *_, true, runs = written
    by_node = {}
    for outage in true:
        by_node.setdefault(outage.node, []).append(outage)
    for run in runs:
        if run.start_s is None:
            continue
        until_s = sample.END_S if run.end_s is None else run.end_s
        for node in run.nodes:
            for outage in by_node.get(node, ()):
                assert until_s <= outage.start_s or run.start_s >= outage.end_s


def test_the_sample_has_every_habit(written):
    source, _, true, _ = written
    rows = source.raw["node_event"].collect()
    assert (rows["reason"] == "cold-start").sum() == 240
    resent = rows.filter(pl.col("end_s") == sample_events.resent_at_s(true, sample.FIRST_S))
    assert resent["node"].drop_nulls().len() >= sample_events.RESENT_NODES
    assert sum(outage.rows[-1].reason == "rack switch failed" for outage in true) == sample_events.BURST_NODES
    assert {"DOWN*", "DOWN", "DRAIN", "MAINT", "BOOT^"} == set(rows["state"].drop_nulls())
    assert rows["reason"].str.contains("¦").any()
    lemons = sample.Hazard().lemons(240).tolist()
    of_lemons = [sum(outage.node == lemon and not outage.planned for outage in true) for lemon in lemons]
    assert min(of_lemons) >= 3

"""The scorecard: every published finding compared with the data."""

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal

import polars as pl

from ttf.page.replication.findings import Datasets, claim_datasets, match_traces
from ttf.page.replication.implied_n import implied_n
from ttf.page.report_contracts import IMPLIED_N, SCORECARD
from ttf.stats.durations.mttf import SECONDS_A_DAY
from ttf.stats.large_runs.ettr import Plan, daly_young_interval_s, ettr_combined, ettr_renewal, ettr_v1, ettr_v2

NOT_RUN, NOT_COMPUTABLE, SUSPECT = "not run", "not computable", "suspect in the source"
REPRODUCED, DIFFERS = "reproduced", "differs"
# Printed of another cluster, so the numbers may differ.
OTHER_CLUSTER = "another cluster"

# Node size of the clusters whose printed rates are checked against their printed times.
GPUS_PER_NODE = 8
FORMS = {"v1": ettr_v1, "v2": ettr_v2, "combined": ettr_combined, "renewal": ettr_renewal}
_REST_OF_PLAN = ("restart_s", "queue_s", "productive_s")
# Columns with the sample size of a row; the first one present counts.
_COUNTS = ("n", "ended", "jobs", "rows_read")

# (trace, table) -> the table, or None if the trace has none.
Tables = Callable[[str, str], pl.DataFrame | None]


# Reason of a blank cell whose table gives none.
BLANK_CELL = "the table leaves it blank"


class NotComputable(Exception):
    """A claim's quantity cannot be computed; the message becomes the note of the scorecard."""


def compute_quantity(table: pl.DataFrame, query: Mapping) -> tuple[float, int | None]:
    """Return (value, n) of a claim's quantity in a table; n is None if the rows do not state it.

    query: column; where: column -> value, list of values, or None for blank; aggregate: sum, max, min or count of the
    values (numbers in text count as numbers); of: rows whose sum is the base of a share; over: column that is the base
    of a share; per: divisor.
    Raises NotComputable, with the reason from the table if its cell is blank.
    """
    rows = _select_rows(table, query.get("where", {}))
    if query["column"] not in table.columns:
        raise NotComputable(f"the table has no column {query['column']}")
    aggregate = query.get("aggregate")
    if aggregate is None and rows.height > 1:
        raise NotComputable(f"{rows.height} rows of the table match, and one is wanted")
    if rows.height == 0 and aggregate not in ("sum", "count"):
        raise NotComputable("the trace has no such row")
    values = rows[query["column"]].cast(pl.Float64, strict=False).drop_nulls()
    if aggregate == "count":
        return float(rows.height), None
    if values.len() == 0 and rows.height:
        reasons = list(rows["reason"].drop_nulls()) if "reason" in rows.columns else []
        raise NotComputable(reasons[0] if reasons else BLANK_CELL)
    value = float({None: values.sum, "sum": values.sum, "max": values.max, "min": values.min}[aggregate]())
    if "of" in query or "over" in query:
        base = _select_rows(table, query["of"])[query["column"]] if "of" in query else rows[query["over"]]
        total = float(base.cast(pl.Float64, strict=False).sum())
        if total == 0:
            raise NotComputable("there is nothing that it could be a share of")
        return value / total, round(total)
    value /= query.get("per", 1)
    count = next((name for name in _COUNTS if name in rows.columns), None)
    return value, int(rows[count].sum()) if count and aggregate in (None, "sum") else None


def _select_rows(table: pl.DataFrame, filters: Mapping) -> pl.DataFrame:
    for name, value in filters.items():
        if name not in table.columns:
            raise NotComputable(f"the table has no column {name}")
        if value is None:
            table = table.filter(pl.col(name).is_null())
        else:
            values = value if isinstance(value, list) else [value]
            texts = [str(item).lower() if isinstance(item, bool) else str(item) for item in values]
            table = table.filter(pl.col(name).cast(pl.String).is_in(texts))
    return table


def projected_mttf_h(gpus: int, failures_per_1000_node_days: float) -> float:
    """Return the MTTF (h) of a job on whole nodes: 1 / (nodes x rate), with GPUS_PER_NODE GPUs per node."""
    nodes = -(-gpus // GPUS_PER_NODE)
    return 24 * 1000 / (nodes * failures_per_1000_node_days)


def compute_printed_ettr(plan: Mapping) -> float:
    """Return the ETTR of a formula for printed numbers. Raise NotComputable if it is undefined for them."""
    rate = -(-plan["gpus"] // GPUS_PER_NODE) * plan["failures_per_1000_node_days"] / 1000 / SECONDS_A_DAY
    write_s, interval_s = plan["checkpoint_write_s"], plan["checkpoint_interval_s"]
    if interval_s == "daly_young":
        interval_s = float(daly_young_interval_s(rate, write_s))
    ettr = float(FORMS[plan["form"]](Plan(rate, interval_s, write_s, *(plan[name] for name in _REST_OF_PLAN))))
    if math.isnan(ettr):
        raise NotComputable("the formula is not defined there: failures take all of the time")
    return ettr


def sum_printed(parts: Sequence[float], whole: float | None = None) -> float:
    """Return the exact decimal sum of printed numbers, divided by `whole` if given."""
    total = sum(Decimal(str(part)) for part in parts)
    return float(total if whole is None else total / Decimal(str(whole)))


def scorecard(claims: Sequence[Mapping], study: Datasets, tables: Tables) -> pl.DataFrame:
    """Return SCORECARD: for each claim, in order, a row per trace that it is compared with, or one without any.

    published, computed and tolerance are in the unit of the claim; computed is blank unless a trace of the data set is
    in the study and allows it, or it follows from printed numbers alone. verdict: reproduced (|computed - published| <=
    tolerance, or on the right side of a bound), differs (the note states the difference), suspect in the source (with
    reason and comparison), another cluster (the trace is not of the data set), not computable (the note states what is
    missing), not run (no trace of the data set is in the study).
    """
    return SCORECARD.frame([row for claim in claims for row in _score_claim(claim, study, tables)])


def _score_claim(claim: Mapping, study: Datasets, tables: Tables) -> Iterator[dict]:
    groups = match_traces(claim, study)
    common = {**claim, "dataset": claim["of"], "trace": claim["of"]}
    if not groups and "missing" not in claim and "table" in claim["quantity"]:
        known = {name for datasets in study.values() for name in datasets}
        missing = [name for name in claim_datasets(claim) if name not in known]
        verb = "is" if len(missing) == 1 else "are"
        yield {**common, "verdict": NOT_RUN, "note": f"{', '.join(missing)} {verb} not in this study"}
        return
    for traces in groups or [[claim["of"]]]:
        row = {**common, "trace": traces[0]}
        if "missing" in claim:
            yield row | {"verdict": NOT_COMPUTABLE, "note": claim["missing"]}
        else:
            row |= _check_claim(claim, traces, tables)
            is_other = traces[0] in study and claim["of"] not in study[traces[0]] and "table" in claim["quantity"]
            is_compared = is_other and "computed" in row
            yield row | ({"verdict": OTHER_CLUSTER, "note": f"printed of {claim['of']}"} if is_compared else {})


def _check_claim(claim: Mapping, traces: Sequence[str], tables: Tables) -> dict:
    """Return the verdict on a claim from the tables of its traces, or from printed numbers alone."""
    query, n = claim["quantity"], None
    try:
        if "table" in query:
            computed, n = compute_quantity(_read_tables(query["table"], traces, tables), query)
        elif "projection" in query:
            computed = projected_mttf_h(**query["projection"])
        elif "arithmetic" in query:
            computed = sum_printed(**query["arithmetic"])
        else:
            computed = compute_printed_ettr(query["ettr"])
    except NotComputable as error:
        return {"verdict": NOT_COMPUTABLE, "note": str(error)}
    return _verdict_cells(claim, computed, n)


def _read_tables(name: str, traces: Sequence[str], tables: Tables) -> pl.DataFrame:
    table_by_trace = {trace: table for trace in traces if (table := tables(trace, name)) is not None}
    if missing_traces := [trace for trace in traces if trace not in table_by_trace]:
        verb = "has" if len(missing_traces) == 1 else "have"
        raise NotComputable(f"{', '.join(missing_traces)} {verb} no table {name}")
    return pl.concat(table_by_trace.values())


def _verdict_cells(claim: Mapping, computed: float, n: int | None) -> dict:
    """Return the computed value, n, verdict and note of a claim."""
    gap = computed - claim["published"]
    # Tolerances are decimals, so the gap is compared up to double rounding.
    agrees = abs(gap) <= claim["tolerance"] or math.isclose(abs(gap), claim["tolerance"], rel_tol=1e-9)
    if "bound" in claim:
        agrees = gap > 0 if claim["bound"] == "above" else gap < 0
    gap_text = f"{gap:+.4g}".replace("-", "−")
    explanation = claim["why"] if agrees else f"by {gap_text}; tolerance {claim['tolerance']:g}: {claim['why']}"
    if "suspect" in claim:
        conclusion = "the data agree with it all the same" if agrees else f"what was computed differs {explanation}"
        return {"computed": computed, "n": n, "verdict": SUSPECT, "note": f"{claim['suspect']}; {conclusion}"}
    return {"computed": computed, "n": n, "verdict": REPRODUCED if agrees else DIFFERS, "note": explanation}


def implied_counts(claims: Sequence[Mapping], study: Datasets, tables: Tables) -> pl.DataFrame:
    """Return IMPLIED_N: for every printed pair of r and p, the implied and the actual number of points.

    n_low, n_high: the range that rounding allows (see `ttf.page.replication.implied_n`). verdict: agrees, differs, not
    run, malformed (not a number), impossible (no n fits), or identical (the same pair on other data of the same source,
    so one was copied).
    """
    paired = [claim for claim in claims if "printed" in claim]
    ids_by_pair = defaultdict(list)
    for claim in paired:
        ids_by_pair[claim["source"], claim["printed"]["r"], claim["printed"]["p"]].append(claim["id"])
    rows = []
    for claim in paired:
        r, p = claim["printed"]["r"], claim["printed"]["p"]
        other_ids = [name for name in ids_by_pair[claim["source"], r, p] if name != claim["id"]]
        for traces in match_traces(claim, study) or [[claim["of"]]]:
            n_in_data = None
            if traces[0] in study and (table := tables(traces[0], claim["quantity"]["table"])) is not None:
                matching = _select_rows(table, claim["quantity"].get("where", {}))
                n_in_data = matching["n"].item() if matching.height == 1 else None
            row = {name: claim.get(name) for name in IMPLIED_N.columns} | {"dataset": claim["of"], "trace": traces[0]}
            row |= {"printed_r": r, "printed_p": p, "n_in_data": n_in_data}
            rows.append(row | _judge_pair(r, p, n_in_data, other_ids, claim["of"]))
    return IMPLIED_N.frame(rows)


def _judge_pair(r: str, p: str, n_in_data: int | None, other_ids: Sequence[str], dataset: str) -> dict:
    """Return the implied numbers of points of a printed pair, the verdict and the note."""
    try:
        low, best, high = implied_n(r, p)
    except ValueError as error:
        return {"verdict": "malformed", "note": str(error)}
    cells = {"n_low": low, "n_best": best, "n_high": high}
    if low is None and high is None and best is None:
        return cells | {"verdict": "impossible", "note": "no number of points gives this r with this p"}
    if other_ids:
        return cells | {"verdict": "identical", "note": f"the same r and p, digit for digit, as {', '.join(other_ids)}"}
    if n_in_data is None:
        return cells | {"verdict": NOT_RUN, "note": f"{dataset} is not in this study"}
    agrees = (low or 0) <= n_in_data <= (high or n_in_data)
    return cells | {"verdict": "agrees" if agrees else DIFFERS, "note": None}

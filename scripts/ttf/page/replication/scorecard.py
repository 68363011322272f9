"""The scorecard: every published finding and what the data give."""

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal

import polars as pl

from ttf.page.replication.implied_n import implied_n
from ttf.page.report_contracts import IMPLIED_N, SCORECARD
from ttf.stats.durations.mttf import SECONDS_A_DAY
from ttf.stats.large_runs.ettr import Plan, daly_young_interval_s, ettr_combined, ettr_renewal, ettr_v1, ettr_v2

NOT_RUN, NOT_COMPUTABLE, SUSPECT = "not run", "not computable", "suspect in the source"
REPRODUCED, DIFFERS = "reproduced", "differs"
VERDICTS = (REPRODUCED, DIFFERS, SUSPECT, NOT_COMPUTABLE, NOT_RUN)

# Of the clusters whose printed rates are checked against their printed times.
GPUS_PER_NODE = 8
FORMS = {"v1": ettr_v1, "v2": ettr_v2, "combined": ettr_combined, "renewal": ettr_renewal}
_REST_OF_PLAN = ("restart_s", "queue_s", "productive_s")
# Where a row of a table says how many it rests on, the first that it has.
_COUNTS = ("n", "ended", "jobs", "rows_read")

# (trace, table) -> the table, or None where the trace has none.
Tables = Callable[[str, str], pl.DataFrame | None]


class NotComputable(Exception):
    """Why a claim's quantity cannot be had; the text is the note of the scorecard."""


def quantity(table: pl.DataFrame, asked: Mapping) -> tuple[float, int | None]:
    """(value, n) of a claim's quantity in a table; n is None where the rows do not say it.

    asked: column; where: column -> value, list of values, or None for blank; aggregate: sum, max, min, count of the
    rows' values (numbers in text count as numbers); of: the rows whose sum the value is a share of; over: the column
    that it is a share of; per: what it is divided by.
    Raises NotComputable, with the reason that the table gives where its cell is blank.
    """
    rows = _rows(table, asked.get("where", {}))
    if asked["column"] not in table.columns:
        raise NotComputable(f"the table has no column {asked['column']}")
    aggregate = asked.get("aggregate")
    if aggregate is None and rows.height > 1:
        raise NotComputable(f"{rows.height} rows of the table match, and one is wanted")
    if rows.height == 0 and aggregate not in ("sum", "count"):
        raise NotComputable("no row of the table matches")
    values = rows[asked["column"]].cast(pl.Float64, strict=False).drop_nulls()
    if aggregate == "count":
        return float(rows.height), None
    if values.len() == 0 and rows.height:
        said = list(rows["reason"].drop_nulls()) if "reason" in rows.columns else []
        raise NotComputable(said[0] if said else "the table leaves it blank")
    value = float({None: values.sum, "sum": values.sum, "max": values.max, "min": values.min}[aggregate]())
    if "of" in asked or "over" in asked:
        base = _rows(table, asked["of"])[asked["column"]] if "of" in asked else rows[asked["over"]]
        total = float(base.cast(pl.Float64, strict=False).sum())
        if total == 0:
            raise NotComputable("there is nothing that it could be a share of")
        return value / total, round(total)
    value /= asked.get("per", 1)
    count = next((name for name in _COUNTS if name in rows.columns), None)
    return value, int(rows[count].sum()) if count and aggregate in (None, "sum") else None


def _rows(table: pl.DataFrame, where: Mapping) -> pl.DataFrame:
    for name, value in where.items():
        if name not in table.columns:
            raise NotComputable(f"the table has no column {name}")
        if value is None:
            table = table.filter(pl.col(name).is_null())
        else:
            values = value if isinstance(value, list) else [value]
            table = table.filter(pl.col(name).cast(pl.String).is_in([_text(one) for one in values]))
    return table


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def projected_mttf_h(gpus: int, failures_per_1000_node_days: float) -> float:
    """The mean time to failure (h) of a job over whole nodes: 1 / (nodes x rate), GPUS_PER_NODE GPUs a node."""
    nodes = -(-gpus // GPUS_PER_NODE)
    return 24 * 1000 / (nodes * failures_per_1000_node_days)


def printed_ettr(plan: Mapping) -> float:
    """The effective training time that a formula gives of printed numbers: see the claims' schema.

    Raises NotComputable where the approximation is not defined.
    """
    rate = -(-plan["gpus"] // GPUS_PER_NODE) * plan["failures_per_1000_node_days"] / 1000 / SECONDS_A_DAY
    write_s, interval_s = plan["checkpoint_write_s"], plan["checkpoint_interval_s"]
    if interval_s == "daly_young":
        interval_s = float(daly_young_interval_s(rate, write_s))
    found = float(FORMS[plan["form"]](Plan(rate, interval_s, write_s, *(plan[name] for name in _REST_OF_PLAN))))
    if math.isnan(found):
        raise NotComputable("the formula is not defined there: failures take all of the time")
    return found


def arithmetic(parts: Sequence[float], whole: float | None = None) -> float:
    """The sum of printed numbers, exact in decimals, over `whole` if there is one."""
    total = sum(Decimal(str(part)) for part in parts)
    return float(total if whole is None else total / Decimal(str(whole)))


def scorecard(claims: Sequence[Mapping], study: Sequence[str], tables: Tables) -> pl.DataFrame:
    """A row per claim in their order, with the columns of SCORECARD.

    published, computed and tolerance are in the claim's unit; computed is blank unless the trace is in the study and
    gives it, or it follows from printed numbers alone. verdict: reproduced (|computed - published| <= tolerance, or on
    the right side of a bound), differs (the note says by how much), suspect in the source (why, and what the data say),
    not computable (what is missing), not run (the trace is not in the study).
    """
    rows = []
    for claim in claims:
        absent = [trace for trace in traces_of(claim) if trace not in study]
        if "missing" in claim:
            found = {"verdict": NOT_COMPUTABLE, "note": claim["missing"]}
        elif absent and "table" in claim["quantity"]:
            verb = "is" if len(absent) == 1 else "are"
            found = {"verdict": NOT_RUN, "note": f"{', '.join(absent)} {verb} not in this study"}
        else:
            found = _judged(claim, tables)
        rows.append(claim | found)
    return SCORECARD.frame(rows)


def traces_of(claim: Mapping) -> list[str]:
    """The traces whose tables a claim needs: its own, and those that are put together with it."""
    return [claim["trace"], *claim.get("quantity", {}).get("also", [])]


def _judged(claim: Mapping, tables: Tables) -> dict:
    """The verdict on a claim that can be checked: of the tables of its traces, or of printed numbers alone."""
    asked, n = claim["quantity"], None
    try:
        if "table" in asked:
            computed, n = quantity(_tables_of(claim, tables), asked)
        elif "projection" in asked:
            computed = projected_mttf_h(**asked["projection"])
        elif "arithmetic" in asked:
            computed = arithmetic(**asked["arithmetic"])
        else:
            computed = printed_ettr(asked["ettr"])
    except NotComputable as why:
        return {"verdict": NOT_COMPUTABLE, "note": str(why)}
    return _verdict(claim, computed, n)


def _tables_of(claim: Mapping, tables: Tables) -> pl.DataFrame:
    name = claim["quantity"]["table"]
    found = {trace: tables(trace, name) for trace in traces_of(claim)}
    if without := [trace for trace, table in found.items() if table is None]:
        raise NotComputable(f"{', '.join(without)} {'has' if len(without) == 1 else 'have'} no table {name}")
    return pl.concat(found.values())


def _verdict(claim: Mapping, computed: float, n: int | None) -> dict:
    gap = computed - claim["published"]
    # A tolerance is written in decimals, so the gap is compared up to the rounding of a double.
    agrees = abs(gap) <= claim["tolerance"] or math.isclose(abs(gap), claim["tolerance"], rel_tol=1e-9)
    if "bound" in claim:
        agrees = gap > 0 if claim["bound"] == "above" else gap < 0
    off = f"{gap:+.4g}".replace("-", "−")
    found = claim["why"] if agrees else f"by {off}; tolerance {claim['tolerance']:g}: {claim['why']}"
    if "suspect" in claim:
        said = "the data agree with it all the same" if agrees else f"what was computed differs {found}"
        return {"computed": computed, "n": n, "verdict": SUSPECT, "note": f"{claim['suspect']}; {said}"}
    return {"computed": computed, "n": n, "verdict": REPRODUCED if agrees else DIFFERS, "note": found}


def implied_counts(claims: Sequence[Mapping], study: Sequence[str], tables: Tables) -> pl.DataFrame:
    """Of every printed pair of r and p: how many points it implies, and the number found. A row per pair.

    n_low, n_high: what the rounding of both leaves possible (see `ttf.page.replication.implied_n`). verdict: agrees,
    differs, not run, malformed (a text that is no number), impossible (no n fits), or identical (the same pair on other
    data of the same source: one was pasted).
    """
    paired = [claim for claim in claims if "printed" in claim]
    same = defaultdict(list)
    for claim in paired:
        same[claim["source"], claim["printed"]["r"], claim["printed"]["p"]].append(claim["id"])
    rows = []
    for claim in paired:
        r, p = claim["printed"]["r"], claim["printed"]["p"]
        found = None
        if claim["trace"] in study and (table := tables(claim["trace"], claim["quantity"]["table"])) is not None:
            matching = _rows(table, claim["quantity"].get("where", {}))
            found = matching["n"].item() if matching.height == 1 else None
        row = {name: claim.get(name) for name in IMPLIED_N.columns}
        row |= {"printed_r": r, "printed_p": p, "n_found": found}
        try:
            low, best, high = implied_n(r, p)
        except ValueError as error:
            rows.append(row | {"verdict": "malformed", "note": str(error)})
            continue
        row |= {"n_low": low, "n_best": best, "n_high": high}
        others = [name for name in same[claim["source"], r, p] if name != claim["id"]]
        if low is None and high is None and best is None:
            row |= {"verdict": "impossible", "note": "no number of points gives this r with this p"}
        elif others:
            row |= {"verdict": "identical", "note": f"the same r and p, digit for digit, as {', '.join(others)}"}
        elif found is None:
            row |= {"verdict": NOT_RUN, "note": f"{claim['trace']} is not in this study"}
        else:
            agrees = (low or 0) <= found <= (high or found)
            row |= {"verdict": "agrees" if agrees else DIFFERS, "note": None}
        rows.append(row)
    return IMPLIED_N.frame(rows)

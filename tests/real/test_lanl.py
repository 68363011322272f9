"""LANL's outages and durations against independent computations from the raw CSV."""

import csv
from collections import Counter, defaultdict
from datetime import datetime
from zoneinfo import ZoneInfo

import polars as pl
import pytest
from format_tables import derive_table, ingest_tables
from lifetime_checks import kaplan_meier
from study_runs import ROOT
from ttf.analyses.factors.estimate_hazards.hazard_ratios import ARE_CLUSTERS, hazard_ratios
from ttf.analyses.factors.estimate_hazards.incidence_tables import cumulative_incidence, exclusive_causes
from ttf.engine import words
from ttf.formats.lanl import derive as lanl
from ttf.records.outages.outage_causes import apply_rules
from ttf.records.outages.outage_records import build_exposure, merge_records
from ttf.stats.durations.mttf import mean_time_to_failure
from ttf.stats.lifetimes.pooled_shapes import fit_shapes
from ttf.study.configuration.yaml_files import load_yaml

FILE = "LA-UR-05-7318-failure-data-1996-2005.csv"
DENVER = ZoneInfo("America/Denver")
CAUSES = {
    "Facilities": 362,
    "Hardware": 14_341,
    "Human Error": 149,
    "Network": 421,
    "Undetermined": 2652,
    "Software": 5361,
}
# By system: (last node of a block, first month in service, first month out of service or None for the data's end).
# Nodes without an outage at a gap between two blocks belong to the nearer block.
MONTHS = {
    "2": [(0, (2005, 6), None), (20, (1997, 1), None), (23, (1997, 1), None), (48, (1997, 1), None)],
    "3": [(127, (2003, 9), None)],
    "4": [(127, (2003, 9), None)],
    "5": [(127, (2003, 9), None)],
    "6": [(31, (2003, 9), None)],
    "8": [(81, (2001, 4), None), (163, (2002, 12), None)],
    "9": [(255, (2003, 9), None)],
    "10": [(255, (2003, 9), None)],
    "11": [(255, (2003, 9), None)],
    "12": [(259, (2003, 9), None), (511, (2005, 3), (2005, 7))],
    "13": [(255, (2003, 9), None)],
    "14": [(127, (2003, 9), None)],
    "15": [(0, (2004, 11), None)],
    "16": [(15, (1996, 12), (2002, 10))],
    "18": [(1023, (2002, 5), None)],
    "19": [(1023, (2002, 10), None)],
    "20": [(511, (2001, 12), None)],
    "21": [(127, (2001, 9), (2002, 2))],
    "23": [(0, (1998, 1), (2005, 1)), (1, (1998, 10), (2005, 1)), (3, (2002, 11), (2005, 1)), (4, (2002, 11), None)],
}
# First month out of service of the systems that are observed from their first outage on.
END_OF_UNTRACKED = {"7": (2000, 1), "22": (2003, 5), "24": (2004, 1)}


@pytest.fixture(scope="module")
def file(shared_data):
    if not (shared_data / "lanl" / FILE).is_file():
        pytest.skip("the LANL data are not beside the checkout")
    return shared_data / "lanl" / FILE


@pytest.fixture(scope="module")
def ingested(file, tmp_path_factory):
    """Return (row account, raw tables) as the study ingests them."""
    raw, account, _ = ingest_tables("lanl", tmp_path_factory.mktemp("lanl"), 0, outages=[file])
    return account, raw


@pytest.fixture(scope="module")
def durations(ingested):
    return derive_table("lanl", "durations", ingested[1])


@pytest.fixture(scope="module")
def rows(file):
    """Return the raw rows with `from` and `to` in seconds since 1970."""
    with file.open(newline="") as text:
        rows = list(csv.DictReader(text))
    for row in rows:
        for name, column in (("from", "Prob Started"), ("to", "Prob Fixed")):
            moment = datetime.strptime(row[column], "%m/%d/%Y %H:%M").replace(tzinfo=DENVER)
            row[name] = int(moment.timestamp())
    return rows


@pytest.fixture(scope="module")
def outages(rows):
    """Return the outages, sorted (from, to) pairs, by (system, node)."""
    outages_by_node = defaultdict(list)
    for row in sorted(rows, key=lambda row: (row["from"], row["to"])):
        if row["nodenumz"]:
            outages_by_node[row["System"], int(row["nodenumz"])].append((row["from"], row["to"]))
    return outages_by_node


def month(year_and_month):
    return int(datetime(*year_and_month, 1, tzinfo=DENVER).timestamp())


def down_minutes(spans):
    minutes = set()
    for start, end in spans:
        minutes.update(range(start // 60, end // 60))
    return len(minutes)


def test_every_row_is_kept(ingested):
    assert ingested[0].rows() == [("outages", 23_739, 23_739, 0)]


def test_known_numbers(file, rows, ingested):
    raw = ingested[1]["outages"].collect()
    assert sum(b'"' in line for line in file.read_bytes().split(b"\n")) == 79
    assert dict(zip(CAUSES, raw.select(pl.col(*lanl.CAUSES).count()).row(0), strict=True)) == CAUSES
    assert raw.filter(pl.all_horizontal(pl.col(*lanl.CAUSES).is_null())).height == 453
    assert raw.select("start_s", "end_s").rows() == [(row["from"], row["to"]) for row in rows]
    nowhere = Counter(row["System"] for row in rows if row["nodenumz"] == "")
    assert nowhere == {"17": 126} == Counter(row["System"] for row in rows if row["System"] == "17")


def test_failures_are_outages_that_no_other_runs_into(durations, outages):
    merged = overlapping = touching = 0
    for spans in outages.values():
        down_until = None
        for start, end in spans:
            overlapping += down_until is not None and start < down_until
            touching += down_until is not None and start == down_until
            merged += down_until is None or start > down_until
            down_until = max(end, down_until or end)
    assert (overlapping, touching) == (159, 127)
    # The first outages of systems 7, 22 and 24 begin their observation.
    assert durations["event"].count() == merged - 3 == 23_324
    assert (durations["event"].is_null() == durations["repair_s"].is_null()).all()
    assert durations["duration_s"].min() == 60


def test_exposure_by_system(durations, rows, outages):
    end = max(row["to"] for row in rows)
    nodes = {row["System"]: int(row["nodes"]) for row in rows if row["nodes"]}
    expected = {}
    for system, blocks in MONTHS.items():
        service_s, low = 0, 0
        for high, first_month, end_month in blocks:
            service_s += (high - low + 1) * (min(month(end_month), end) if end_month else end)
            service_s -= (high - low + 1) * month(first_month)
            low = high + 1
        assert low == nodes[system]
        expected[system] = service_s
    for system, end_month in END_OF_UNTRACKED.items():
        expected[system] = month(end_month) - outages[system, 0][0][0]
    assert set(expected) == set(nodes)
    down_s = Counter()
    for (system, _), spans in outages.items():
        down_s[system] += 60 * down_minutes(spans)
    exposure_s = dict(durations.group_by("system").agg(pl.col("duration_s").sum()).iter_rows())
    assert exposure_s == {system: seconds - down_s[system] for system, seconds in expected.items()}
    # The first outages of those systems end no duration.
    repairs = dict(durations.group_by("system").agg(pl.col("repair_s").sum()).iter_rows())
    for system in END_OF_UNTRACKED:
        start, end_s = outages[system, 0][0]
        down_s[system] -= end_s - start
    assert repairs == dict(down_s)
    assert round(sum(exposure_s.values()) / 86_400) == 4_877_232
    units = dict(durations.group_by("system").agg(pl.col("unit_id").n_unique()).iter_rows())
    assert units == nodes
    assert sum(nodes.values()) == 5006


def test_outages_and_exposure_agree_with_durations(ingested, durations, rows, outages):
    exposure = build_exposure("lanl", derive_table("lanl", "exposure", ingested[1]))
    rules = load_yaml(ROOT / "config/outage_causes.yaml")["rules"]
    table, records = merge_records(
        "lanl", apply_rules(derive_table("lanl", "outage_records", ingested[1]), rules), exposure
    )
    assert table["counted"].sum() == durations["event"].count() == 23_324
    assert sorted(table.select("unit_id", "start_s").rows()) == sorted(
        (f"{system}/{node}", start) for (system, node), spans in outages.items() for start in merged_starts(spans)
    )
    # Count each minute down of each node; a node in service is either up or down.
    down_s = 60 * sum(down_minutes(spans) for spans in outages.values())
    served_s = (exposure["until_s"] - exposure["from_s"]).sum()
    assert served_s - durations["duration_s"].sum() == down_s == table["duration_s"].sum()
    assert round(1 - down_s / served_s, 4) == 0.9988
    assert round((served_s - down_s) / 23_324 / 86_400, 1) == 209.1
    levels = dict(records.drop_nulls("level").group_by("level").len().iter_rows())
    assert levels == {name: sum(bool(row[name]) for row in rows if row["nodenumz"]) for name in CAUSES}
    planned = [row for row in rows if row["Hardware"] == "Maintenance" or row["Software"].startswith("DST")]
    assert len(planned) == 734 + 1313
    assert records["planned"].sum() == sum(bool(row["nodenumz"]) for row in planned)


def merged_starts(spans):
    """Yield the start of each group of overlapping or touching outages."""
    down_until = None
    for start, end in spans:
        if down_until is None or start > down_until:
            yield start
        down_until = max(end, down_until or end)


def test_causes_of_durations(durations, rows):
    causes = durations.select(lanl.CAUSES).sum().row(0)
    assert dict(zip(CAUSES, causes, strict=True)) == causes_of_first_rows(rows)
    assert causes == (348, 14_175, 131, 417, 2625, 5186)
    failures = durations.filter(pl.col("event").is_not_null())
    assert failures.filter(~pl.any_horizontal(lanl.CAUSES)).height == 443
    assert not durations.filter(pl.col("event").is_null()).select(pl.any_horizontal(lanl.CAUSES).any()).item()


def causes_of_first_rows(rows):
    """Count by cause the outages that begin with a row of it, except those that begin the observation."""
    counts, down_until, begun = Counter(), {}, {}
    for row in sorted((row for row in rows if row["nodenumz"]), key=lambda row: (row["from"], row["to"])):
        node = row["System"], row["nodenumz"]
        if node not in down_until and node[0] in END_OF_UNTRACKED:
            begun[node] = None
        elif node not in down_until or row["from"] > down_until[node]:
            begun[node] = row["from"], set()
        down_until[node] = max(row["to"], down_until.get(node, 0))
        if begun[node] and row["from"] == begun[node][0]:
            new_causes = {name for name in CAUSES if row[name]} - begun[node][1]
            counts.update(new_causes)
            begun[node][1].update(new_causes)
    return counts


def test_the_readme_states_the_mean_and_the_shape(durations):
    events = {"failure": (pl.col("event") == "failure").fill_null(False)}
    (shape,) = fit_shapes(durations, events, ["all"]).values()
    mttf = mean_time_to_failure(durations, "failure", ["all"], [0.95], block_days=7).row(0, named=True)
    bounds = words.in_common_unit(*(mttf[name] for name in ("mttf_s", "ci_low_clustered_s", "ci_high_clustered_s")))
    low, high = (words.number(shape[f"shape_within_ci_{bound}"]) for bound in ("low", "high"))
    row = (
        f"| {mttf['n']:,} units at risk, {mttf['events']:,} failures | MTTF {words.duration(mttf['mttf_s'])} "
        f"(95% CI {words.join_range(*bounds)}); decreasing hazard, "
        f"Weibull shape {words.number(shape['shape_within'])} (95% CI {words.join_range(low, high)}) |"
    )
    assert row.replace("\u00a0", " ") in (ROOT / "README.md").read_text(encoding="utf-8")


def test_causes_that_exclude_each_other(durations):
    """Six causes; one outage has two of them, and 443 outages have none."""
    competing, ends = exclusive_causes(durations, lanl.CAUSES)
    counts = dict(competing["event"].drop_nulls().value_counts().iter_rows())
    assert ends == [
        *("facilities", "hardware only", "human error", "network", "undetermined", "software only"),
        *("hardware and software", "unknown cause"),
    ]
    assert (counts["hardware only"], counts["software only"], counts["hardware and software"]) == (14_174, 5185, 1)
    assert counts["unknown cause"] == 443 and sum(counts.values()) == 23_324
    curves = cumulative_incidence(competing, ends, ["all"])
    total = sum(curves.filter(event=end)["incidence"].to_numpy() for end in ends)
    survival = kaplan_meier(durations, "failure")["survival"].to_numpy()
    assert abs(total + survival - 1).max() < 1e-9


def test_hazard_ratios_are_clustered_by_system_as_all_else_is(durations):
    """Each system has machines of one type, so types cannot be compared within systems."""
    cox = hazard_ratios(durations, "failure", ["system", "machine_type", "cpu_type"])
    assert cox["cluster_by"].drop_nulls().unique().to_list() == ["system"]
    mttf = mean_time_to_failure(durations, "failure", ["all"]).row(0, named=True)
    total = cox.row(by_predicate=pl.col("covariate") == "all", named=True)
    assert (mttf["cluster_by"], mttf["clusters"]) == ("system", pytest.approx(total["clusters"]))
    assert ARE_CLUSTERS in cox.row(by_predicate=pl.col("covariate") == "system", named=True)["reason"]
    single_system_types = (
        durations.group_by("cpu_type").agg(systems=pl.col("system").n_unique()).filter(systems=1)["cpu_type"]
    )
    single_system_rows = cox.filter(pl.col("level").is_in(single_system_types.implode()), covariate="cpu_type")
    assert single_system_rows["hazard_ratio"].count() and not single_system_rows["ci_low_clustered"].count()

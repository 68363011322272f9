"""A table of units with the outages: late joiners, units that came back, overlaps, unknown units, watched time."""

import polars as pl
import pytest
from format_tables import FORMATS, derive_table, scan_tables
from simulated_fleet import DAY, FIRST_S, MTBF_S, NODES, simulate_fleet
from ttf.analyses.outages.measure_availability.compute import availability, summarise_outages
from ttf.analyses.outages.track_outages.compute import analyse_growth
from ttf.formats.outages.read import READING
from ttf.raw.ingest import Part, anomalies, ingest, ingest_part, merge
from ttf.raw.raw_tables import table_schemas
from ttf.records.durations import find_strata
from ttf.records.outages.outage_durations import durations_of_outages
from ttf.records.outages.outage_records import build_exposure, merge_records
from ttf.study.configuration.messages import ConfigError
from ttf.study.trace_files import find_raw_tables

ENTRY = {
    "format": "outages",
    "mapping": {"unit": "host", "start": "down", "end": "up"},
    "times": {"format": "seconds"},
    "blank": ["open"],
}
ROWS = ["host,down,up", "a,150,160", "b,300,310", "b,700,open", "c,800,900"]
UNITS = ["unit,from,until,group,kind,gpus", "a,100,200,x,m1,8", "a,500,,y,m1,8", "b,0,400,x,m2,4", "c,600,,,m2,4"]
OUTSIDE = "reaches beyond the time in which the unit was watched"


class Watched:
    """Outages, exposure, account of rows and quarantine of lines of outages and of units."""

    def __init__(self, folder, rows=ROWS, units=UNITS, **keys):
        entry, self.schemas = ENTRY | keys, table_schemas(READING.schema(ENTRY | keys))
        self.files = {name: folder / f"{name}.csv" for name in ("units", "rows")}
        for file, lines in zip(self.files.values(), (units, rows), strict=True):
            file.write_text("\n".join(lines) + "\n")
        paths = {name: [self.files[name]] for name in ("rows", "units")}  # units are read first, nevertheless
        self.account, self.quarantine = ingest(paths, self.schemas, folder, 1, READING.readers)
        raw = scan_tables(folder, "units", "rows")
        self.exposure = build_exposure("t", derive_table("outages", "exposure", raw, entry))
        records = derive_table("outages", "outage_records", raw, entry)
        self.outages, self.records = merge_records("t", records, self.exposure)

    def problems(self):
        return self.quarantine.select("table", "line", "reason", "column").rows()


def test_each_unit_is_watched_in_its_own_rows(tmp_path):
    trace = Watched(tmp_path)
    assert trace.problems() == []
    columns = ("unit_id", "node", "group", "from_s", "until_s", "kind", "node_gpus")
    assert trace.exposure.select(columns).rows() == [
        ("a", "a", "x", 100, 200, "m1", 8),
        ("a", "a", "y", 500, 900, "m1", 8),
        ("b", "b", "x", 0, 400, "m2", 4),
        ("c", "c", None, 600, 900, "m2", 4),
    ]
    # The end of the trace is the last time in either table.
    late = Watched(tmp_path, units=[*UNITS, "d,0,1000,,,"])
    assert late.exposure.filter(unit_id="c")["until_s"].item() == 1000
    # `b` had left when it failed again.
    outages = trace.outages.select("unit_id", "start_s", "group", "kind", "counted", "flagged").rows()
    assert outages[2] == ("b", 700, "x", "m2", False, f"no end was written; {OUTSIDE}")
    assert outages[:2] + outages[3:] == [
        ("a", 150, "x", "m1", True, None),
        ("b", 300, "x", "m2", True, None),
        ("c", 800, None, "m2", True, None),
    ]
    row = availability(trace.outages, trace.records, trace.exposure, 7).row(0, named=True)
    assert (row["outages"], row["exposure_s"], row["mtbf_s"]) == (3, 1200, 400)
    summary = summarise_outages(trace.outages, trace.exposure, True).row(0, named=True)
    assert (summary["outages"], summary["outages_outside"]) == (4, 1)


def test_group_kind_and_gpus_are_strata_of_the_gaps(tmp_path):
    trace = Watched(tmp_path)
    durations = durations_of_outages(trace.outages, trace.exposure, [], {"node": ["unit_id"]})
    strata = FORMATS["outages"]["strata"]
    assert find_strata(durations, strata) == ["all", *strata]
    by_gpus = dict(durations.group_by("node_gpus").agg(pl.col("duration_s").sum()).iter_rows())
    assert by_gpus == {8: 490, 4: 390 + 200}
    plain = Watched(tmp_path, units=["unit,from,until", *(f"{unit},0," for unit in "abc")])
    durations = durations_of_outages(plain.outages, plain.exposure, [], {})
    assert find_strata(durations, strata) == ["all"]


def test_rows_of_a_unit_that_overlap_are_errors_with_their_line(tmp_path):
    spans = ["a,100,200", "a,150,160", "b,0,", "a,200,300", "b,500,600", "c,0,50", "c,0,50", "d,9,3", "d,,3"]
    trace = Watched(tmp_path, units=["unit,from,until", *spans])
    overlaps = [("units", line, "overlap", "unit_id") for line in (3, 6, 8)]
    wrong = [("units", 9, "end_before_start", "until"), ("units", 10, "missing_value", "from")]
    assert [problem for problem in trace.problems() if problem[0] == "units"] == overlaps + wrong
    (row,) = anomalies(trace.quarantine, trace.account).filter(code="overlap").to_dicts()
    assert row["sentence"] == "it begins before an earlier row of the same unit_id ends"
    assert (row["first_lines"], trace.quarantine["text"][0]) == ("3, 6, 8", "a,150,160")


def test_an_outage_of_an_unknown_unit_is_an_error_with_its_line(tmp_path):
    trace = Watched(tmp_path, rows=[*ROWS, "A,150,160"])
    assert trace.problems() == [("rows", 6, "orphan", "unit_id")]
    assert trace.outages["unit_id"].unique().sort().to_list() == ["a", "b", "c"]


@pytest.mark.parametrize("length", [0, 50])
def test_an_outage_outside_the_watch_says_so_and_is_in_no_rate(tmp_path, length):
    trace = Watched(tmp_path, rows=["host,down,up", f"a,300,{300 + length}", "c,800,900"])
    outage = trace.outages.row(0, named=True)
    assert (outage["counted"], OUTSIDE in outage["flagged"]) == (False, True)
    assert summarise_outages(trace.outages, trace.exposure, True)["outages_outside"].item() == 1
    assert availability(trace.outages, trace.records, trace.exposure, 7)["outages"][0] == 1


def test_the_times_are_written_as_those_of_the_outages(tmp_path):
    rows = ["host,down,up", "a,1.2.2024 10:00,2.2.2024 10:00"]
    times = {"format": "%d.%m.%Y %H:%M", "zone": "Europe/Berlin"}
    trace = Watched(tmp_path, rows, ["unit,from,until", "a,1.1.2024 00:00,"], times=times)
    first_s = FIRST_S - 3600
    assert trace.exposure.select("from_s", "until_s").row(0) == (first_s, first_s + 32 * DAY + 10 * 3600)


def test_parts_are_read_like_the_whole_and_units_before_outages(tmp_path):
    trace = Watched(tmp_path, [*ROWS, "A,1,2"], [*UNITS, "b,10,20,,,"])
    parts = []
    for name in ("rows", "units"):  # files of outages come first
        folder = tmp_path / name
        folder.mkdir()
        files = {name: trace.files[name]}
        parts.append(Part(name, files, folder, *ingest_part(files, trace.schemas, folder, 1, READING.readers)))
    (tmp_path / "merged").mkdir()
    account, quarantine, _ = merge(parts, trace.schemas, tmp_path / "merged", 1, READING.readers)
    assert account.equals(trace.account) and quarantine.equals(trace.quarantine)
    assert [reason for *_, reason, _ in trace.problems()] == ["overlap", "orphan"]
    entry = ENTRY | {"folder": str(tmp_path), "files": {"rows": "rows.csv"}, "units": str(tmp_path / "none.csv")}
    with pytest.raises(ConfigError, match=r"registry\.mine\.units: .*none\.csv"):
        find_raw_tables("mine", entry, FORMATS)


def test_a_fleet_that_grew_has_its_mtbf_and_no_trend(tmp_path):
    (outages, units), mapping = simulate_fleet(seed=1), {"unit": "unit", "start": "start", "end": "end"}
    trace = Watched(tmp_path, outages, units, mapping=mapping, times={"format": "epoch"})
    row = availability(trace.outages, trace.records, trace.exposure, 7).row(0, named=True)
    assert row["units"] == NODES
    assert row["mtbf_ci_low_clustered_s"] < MTBF_S < row["mtbf_ci_high_clustered_s"]
    growth = analyse_growth(trace.records, trace.exposure)["growth"].row(0, named=True)
    assert growth["trend"] == "none"

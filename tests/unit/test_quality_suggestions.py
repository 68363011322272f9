"""Suggestions from quarantined rows: in words, and as a changed schema that a person may adopt."""

import polars as pl
import pytest
import yaml
from format_tables import FILES
from ttf.raw.ingest import anomalies, ingest
from ttf.raw.quality.suggested_schema import suggested_schema
from ttf.raw.quality.suggestions import suggest_changes, words_by_anomaly
from ttf.raw.raw_tables import table_schemas
from ttf.study.recognition.format_declarations import read_schema_text

PODS = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time"


@pytest.fixture
def advise(tmp_path):
    """Ingest tables (texts) under a schema (YAML); return the suggestions, the account and the quarantine."""

    def run(text, **tables):
        schemas = table_schemas(yaml.safe_load(text))
        files = {}
        for name, content in tables.items():
            files[name] = [tmp_path / f"{name}.csv"]
            files[name][0].write_text(content, encoding="utf-8")
        (tmp_path / "raw").mkdir(exist_ok=True)
        account, quarantine = ingest(files, schemas, tmp_path / "raw", 1.0)
        return suggest_changes(quarantine, schemas, files), account, quarantine

    return run


def pod(name="p", cpu="1", gpu="1000", phase="Failed", submit="5", spec=""):
    return f"{name},{cpu},1,1,{gpu},{spec},LS,{phase},{submit},9,7\n"


def words(suggestions):
    return [suggestion.words for suggestion in suggestions]


def pods(*rows, header=PODS):
    return header + "\n" + pod("good") + "".join(rows)


def test_a_new_word(advise):
    text = pods(*(pod(f"p{n}", phase="Interrupted") for n in range(3)), pod("q", phase="Lost"))
    suggestions, account, quarantine = advise(read_schema_text(FILES["openb"]), pods=text)
    assert words(suggestions) == ["allow the words Interrupted and Lost for pod_phase"]
    assert suggestions[0].column_keys == {
        "values": ["Succeeded", "Failed", "Running", "Pending", "Interrupted", "Lost"]
    }
    table = anomalies(quarantine, account, words_by_anomaly(suggestions))
    assert table["suggestion"].to_list() == words(suggestions)
    assert anomalies(quarantine, account)["suggestion"].to_list() == [None]


@pytest.mark.parametrize(
    ("row", "text", "keys"),
    [
        (pod(gpu="1500.5"), "raise the maximum of gpu_milli from 1,000 to 1,501", {"maximum": 1501}),
        (pod(cpu="-7"), "none: correct the rows at their source", {}),  # it is blank anyway
        (pod(gpu="-1"), "lower the minimum of gpu_milli from 0 to -1", {"minimum": -1}),  # it must not be blank
        (pod(submit=""), "let creation_time be blank (required: false)", {"required": False}),
        (pod(cpu="N/A"), "read the word N/A of cpu_milli as blank", {"blank": ["N/A"]}),
        (pod(submit="1739162000000"), "none for creation_time up to 1,739,162,000,000: no value is that large", {}),
        (pod("good"), "none: take the repeated rows out", {}),
        (pod(submit="8"), "none: correct the rows", {}),
        ("a,b\n", "none: look for a delimiter inside a field", {}),
    ],
)
def test_what_each_anomaly_suggests(advise, row, text, keys):
    suggestions, *_ = advise(read_schema_text(FILES["openb"]), pods=pods(row))
    (suggestion,) = suggestions
    assert suggestion.words.startswith(text)
    assert (suggestion.column_keys, suggestion.rows, suggestion.first_lines) == (keys, 1, "3")


def test_a_column_is_found_by_the_header_of_its_file(advise):
    names = PODS.split(",")
    reverse = names[::-1]
    rows = [
        dict(zip(names, pod(f"p{n}", phase=phase).strip().split(","), strict=True))
        for n, phase in enumerate(["Failed", "Interrupted"])
    ]
    text = "\ufeff" + ",".join(reverse) + "\n" + "".join(",".join(row[name] for name in reverse) + "\n" for row in rows)
    suggestions, *_ = advise(read_schema_text(FILES["openb"]), pods=text)
    assert words(suggestions) == ["allow the word Interrupted for pod_phase"]


def test_quotes_and_cut_lines(advise):
    schema = read_schema_text(FILES["openb"]).replace("  pods:\n", "  pods:\n    quoted: true\n")
    suggestions, *_ = advise(schema, pods=pods(pod("p", phase='"On, hold"', spec='"A,B"')))
    assert words(suggestions) == ["allow the word On, hold for pod_phase"]
    # First the phase stands before the cut, then beyond it.
    suggestions = advise(read_schema_text(FILES["openb"]), pods=pods(pod("p", phase="Lost", submit="5" + " " * 600)))[0]
    assert words(suggestions) == ["allow the word Lost for pod_phase"]
    suggestions, *_ = advise(read_schema_text(FILES["openb"]), pods=pods(pod("p" * 600, phase="Lost")))
    assert not suggestions[0].is_change


DIRTY = [
    *(pod(f"p{n}", phase="Interrupted") for n in range(3)),
    pod("g", gpu="1500"),
    pod("c", gpu="-1"),
    pod("n", cpu="N/A"),
    pod("s", submit=""),
    pod("q", spec='"A,B"'),
]


@pytest.mark.parametrize("layout", ["as shipped", "in blocks", "with an alias", "all on one line"])
def test_the_suggested_schema_accepts_the_rows(advise, layout):
    text = read_schema_text(FILES["openb"])
    document = yaml.safe_load(text)
    if layout == "in blocks":
        text = "# mine\n" + yaml.safe_dump(document, sort_keys=False).replace("type: text", "type: text # a comment")
    elif layout == "all on one line":
        text = yaml.safe_dump(document, default_flow_style=True, width=10**6)
    elif layout == "with an alias":
        phase = "{name: pod_phase, type: text, required: true, values: [Succeeded, Failed, Running, Pending]}"
        text = text.replace("maximum: 1000,", "maximum: &most 1000,").replace(phase, f"&phase {phase}")
    suggestions, account, _ = advise(text, pods=pods(*DIRTY))
    assert account["rows_quarantined"].to_list() == [len(DIRTY)]
    suggested = suggested_schema(text, "mine", suggestions)
    adopted = yaml.safe_load(suggested)
    assert adopted["version"] == 2
    assert suggested.count("#| Suggested: ") == 5
    assert "#| Suggested: allow the word Interrupted for pod_phase; 3 rows, lines 3, 4, 5." in suggested
    assert "registry: {mine: {schema: path/to/the/copy.yaml}}" in suggested
    second_suggestions, account, _ = advise(suggested, pods=pods(*DIRTY))
    assert (second_suggestions, account["rows_quarantined"].to_list()) == ([], [0])
    # An adopted schema no longer contains the word Suggested.
    unchanged = suggested_schema(suggested, "mine", second_suggestions)
    assert yaml.safe_load(unchanged) == adopted
    assert "Suggested" not in unchanged
    # Lines without a suggestion are unchanged.
    if layout == "as shipped":
        lines = suggested.splitlines()
        changed = [line.strip() for line in text.splitlines() if line not in lines]
        assert [line.split(",")[0] for line in changed] == [
            *("version: 1", "- {name: gpu_milli", "- {name: pod_phase", "- {name: creation_time"),
        ]  # and cpu_milli of the pods; that of the nodes is the same line


def test_an_alias_is_changed_in_one_place_only(advise):
    text = read_schema_text(FILES["openb"]).replace(
        "gpu_milli, type: number, scale: 1, minimum: 0, maximum: 1000",
        "gpu_milli, type: number, scale: 1, minimum: 0, maximum: &most 1000",
    )
    text = text.replace(
        "name: gpu, type: count, as: gpu_count", "name: gpu, type: count, as: gpu_count, maximum: *most"
    )
    suggestions, *_ = advise(text, pods=pods(pod("g", gpu="1500")))
    adopted = yaml.safe_load(suggested_schema(text, "t", suggestions))
    assert adopted["tables"]["pods"]["columns"][4]["maximum"] == 1500
    assert adopted["tables"]["nodes"]["columns"][3]["maximum"] == 1000


def test_a_hostile_word_stays_in_its_comment(advise):
    phase = "x}]\u2028evil: yes # &a *b !!python/name:os.system"
    suggestions = advise(read_schema_text(FILES["openb"]), pods=pods(pod("p", phase=phase), pod("q", phase="y: [z")))[0]
    suggested = suggested_schema(read_schema_text(FILES["openb"]), "t", suggestions)
    assert yaml.safe_load(suggested)["tables"]["pods"]["columns"][7]["values"][-1] == "y: [z"
    assert "\u2028" not in suggested


def test_rows_without_a_text_or_a_file_of_lines(advise, tmp_path):
    """A table with its own reader has no such text."""
    text = read_schema_text(FILES["openb"])
    _, _, quarantine = advise(text, pods=pods(pod("p", phase="Lost"), pod("s", submit="")))
    schemas = table_schemas(yaml.safe_load(text))
    no_text = quarantine.with_columns(text=pl.lit(None, pl.String))
    page = tmp_path / "pods.csv"
    page.write_text("<html>")
    for rows, files in ((no_text, {}), (no_text, {"pods": [page]}), (quarantine, {"pods": [page]}), (quarantine, {})):
        texts = words(suggest_changes(rows, schemas, files))
        assert texts[0].startswith("none: no word stands often enough in pod_phase")
        assert texts[1] == "let creation_time be blank (required: false)"

"""The configuration: reading, merging, messages, documentation."""

import copy
import re
import runpy
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from snakemake.utils import update_config
from ttf.study.configuration.config import SCHEMA, _merge, dump, read_layers, resolve
from ttf.study.configuration.documents import SCHEMAS, iterate_key_paths, load_schema
from ttf.study.configuration.messages import ConfigError
from ttf.study.configuration.yaml_files import load_yaml
from ttf.study.recognition.format_declarations import load_formats

ROOT = Path(__file__).resolve().parents[2]
DEFAULTS = ("config/config.yaml", load_yaml(ROOT / "config/config.yaml"))
TRACES = load_yaml(ROOT / "config/traces.yaml")
TABLES = {name: list(format_["tables"]) for name, format_ in load_formats().items()}
OPENB_ENTRY = {"format": "openb", "folder": "data/mine"}

# Load on the machine must not fail a test.
PATIENT = settings(suppress_health_check=[HealthCheck.too_slow])


def resolved(*contents, tables=TABLES):
    """Merge layers my.yaml, my1.yaml ... over the defaults."""
    layers = [(f"my{i or ''}.yaml", content) for i, content in enumerate(contents)]
    return resolve([DEFAULTS, *layers], TRACES, tables)


def problems(*contents):
    """Return the lines of the error for these layers."""
    with pytest.raises(ConfigError) as error:
        resolved(*contents)
    return str(error.value).split("\n")


def yaml_error(path, content):
    """Return the error message for a file with this content."""
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(ConfigError) as error:
        load_yaml(path, "my.yaml")
    return str(error.value)


# Shipped files -------------------------------------------------------------------------------------------


def test_the_defaults_alone_run_the_simulated_slurm_cluster():
    result, registry = resolved(), {"sample_slurm": TRACES["sample_slurm"]}
    assert result == DEFAULTS[1] | {"name": "sample_slurm", "registry": registry}
    samples = ("sample", "sample_philly", "sample_slurm")
    assert all("Synthetic" in TRACES[name]["title"] and "Synthetic" in TRACES[name]["note"] for name in samples)


def test_the_shipped_defaults_are_those_of_the_schema():
    assert resolve([], TRACES) == resolved()
    assert list(DEFAULTS[1]) == list(SCHEMA["properties"])


def test_every_shipped_trace_resolves_and_has_a_source():
    result = resolved({"study": list(TRACES)})
    assert all(entry["title"] and entry["source"] and entry["note"] for entry in result["registry"].values())


def iterate_parts(schema):
    """Iterate over a schema and its nested schemas."""
    for key in ("properties", "patternProperties"):
        for part in schema.get(key, {}).values():
            yield from iterate_parts(part)
    yield from iterate_parts(schema["items"]) if "items" in schema else ()
    yield schema


SCHEMA_FILES = sorted(path.name for path in SCHEMAS.glob("*.schema.yaml"))
# Keywords for the checker and for readers.
KEYWORDS = {"type", "enum", "pattern", "minLength", "maxLength", "minimum", "maximum", "items", "minItems", "oneOf"}
KEYWORDS |= {"exclusiveMinimum", "exclusiveMaximum", "uniqueItems", "properties", "patternProperties", "required"}
KEYWORDS |= {"minProperties", "additionalProperties", "with", "needed"}
KEYWORDS |= {"title", "description", "$comment", "default", "examples"}


@pytest.mark.parametrize("name", SCHEMA_FILES)
def test_the_schemas_are_valid_and_closed(name):
    schema = load_schema(name)
    Draft202012Validator.check_schema(schema)
    for part in iterate_parts(schema):
        assert part.keys() <= KEYWORDS
        assert part["type"] != "array" or "items" in part
        assert part.get("minItems", 1) == part.get("minLength", 1) == 1
        assert part["type"] != "object" or part["additionalProperties"] is False
        for key in ("with", "required"):
            assert all(word in schema_keys(schema) for word in part.get(key, []))


def schema_keys(schema):
    return {path[-1] for part in iterate_parts(schema) for path, _ in iterate_key_paths(part)}


def test_every_key_is_described():
    assert all(part.get("description") for path, part in iterate_key_paths(SCHEMA) if path[-1] != "<name>")


def test_the_readme_has_every_key_and_valid_examples():
    text = (ROOT / "config/README.md").read_text(encoding="utf-8")
    render = runpy.run_path(str(ROOT / "tools/docs/configuration.py"))["render"]
    assert text == render(text), "run: make docs"
    examples = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    for content in examples:
        assert resolved(yaml.safe_load(content))


# Merging --------------------------------------------------------------------------------------------------


def test_resolving_does_not_modify_or_share_inputs():
    config = {"study": ["mine"], "registry": {"mine": dict(OPENB_ENTRY)}}
    originals = copy.deepcopy((DEFAULTS, TRACES, config))
    result = resolved(config)
    result["correlation"]["cutoffs_s"].append(1)
    result["registry"]["mine"]["folder"] = "else"
    assert (DEFAULTS, TRACES, config) == originals
    assert resolved()["correlation"]["cutoffs_s"] == [20000, 50000, 100000]


VALUES = st.recursive(
    st.none() | st.integers(0, 9) | st.lists(st.integers(0, 9), max_size=2),
    # Empty mappings: see _merge.
    lambda inner: st.dictionaries(st.sampled_from("ab"), inner, min_size=1),
    max_leaves=4,
)
MAPPINGS = st.dictionaries(st.sampled_from("ab"), VALUES)


@PATIENT
@given(st.lists(MAPPINGS, max_size=3))
def test_merging_equals_that_of_snakemake(layers):
    merged, expected = {}, {}
    for layer in layers:
        merged = _merge(merged, layer)
        update_config(expected, copy.deepcopy(layer))
    assert merged == expected


NEW_NAMES = st.from_regex(r"[A-Za-z0-9_-]{1,9}", fullmatch=True).filter(lambda name: name not in TRACES)


@settings(PATIENT, max_examples=8)
@given(
    st.fixed_dictionaries(
        {},
        optional={
            "study": st.lists(st.sampled_from(sorted(TRACES)), min_size=1, unique=True),
            "quarantine": st.fixed_dictionaries({"max_share": st.floats(0, 1)}),
            "survival": st.fixed_dictionaries({"max_steps": st.integers(10, 2**63 - 1)}),
            "registry": st.dictionaries(NEW_NAMES, st.just(OPENB_ENTRY), max_size=2),
        },
    )
)
def test_the_dump_of_a_valid_configuration_round_trips(config):
    result = resolved(config)
    # `scatter` divides the work and does not affect results.
    assert yaml.safe_load(dump(result)) == {key: value for key, value in result.items() if key != "scatter"}
    reloaded = resolve([("resolved.yaml", yaml.safe_load(dump(result)))], {})
    assert reloaded == result
    assert dump(reloaded) == dump(result)


# Messages -------------------------------------------------------------------------------------------------


def trace(**keys):
    return {"registry": {"mine": OPENB_ENTRY | keys}}


@pytest.mark.parametrize(
    ("config", "line"),
    [
        ({"correlation": {"cutoff_s": [1]}}, "correlation.cutoff_s: there is no such key; did you mean cutoffs_s?"),
        (trace(format="openbb"), "registry.mine.format: 'openbb' is not allowed; did you mean openb? Allowed: "),
        # No suggestion from the hundred keys that share some letters.
        ({"publish": {"on": True}}, "publish.on: there is no such key. Allowed here: title, description, creators"),
        ({"max-step": 20}, "max-step: there is no such key here; did you mean survival: {max_steps: ...}?"),
        ({"study": ["mien"], **trace()}, "study: 'mien' is not in the registry; did you mean mine? In the registry: "),
        ({"study": "openb"}, "study: found the text 'openb'; expected a list of names"),
        ({"survival": {"max_steps": 2**63}}, "survival.max_steps: found a number that is too large"),
        ({"study": ["sample", "sample"]}, "study: 'sample' appears twice in the list."),
        ({"survival": {"max_steps": True}}, "survival.max_steps: found true (yes, no, on and off mean true or false)"),
        ({"survival": {"max_steps": 9}}, "survival.max_steps: 9 is out of range"),
        ({"quarantine": {"max_share": float("nan")}}, "quarantine.max_share: found the number nan"),
        ({"registry": {"mine": {"folder": "x"}}}, "registry.mine.format: is missing"),
        ({"registry": {"mine": {"format": "openb"}}}, "registry.mine: has no folder"),
        ({"registry": {"sample": {"folder": "x"}}}, "registry.sample: is an embedded sample"),
        (
            {"registry": {"mine": {"format": "openb", "embedded": True}}},
            "registry.mine.embedded: works with the format",
        ),
        ({"analyses": ["no/such"]}, "analyses[0]: no/such: there is no such folder"),
        ({"claims": [__file__, "no/such"]}, "claims[1]: no/such: there is no such file"),
        (
            trace(files={"pod": "a.csv"}),
            "registry.mine.files.pod: the format openb has no such table; did you mean pods?",
        ),
        (trace(files={"pods": "../a.csv"}), "registry.mine.files.pods: '../a.csv' is not allowed"),
        (trace(format="sacct", window={"from": 0}), "registry.mine.window.to: is missing"),
        (
            trace(format="sacct", window={"from": 5, "to": "1970-01-01T00:00Z"}),
            "registry.mine.window.to: is not after from",
        ),
        (
            trace(format="sacct", window={"from": "2017-02-29T00:00:00Z", "to": 2**40}),
            "registry.mine.window.from: '2017-02-29T00:00:00Z' is not a date and time",
        ),
        (trace(note=""), "registry.mine.note: is empty"),
    ],
)
def test_each_problem_gives_one_line(config, line):
    (problem,) = problems(config)
    assert problem.startswith("my.yaml: " + line)


@pytest.mark.parametrize("name", ["", "a\n", "a b", "ä", "{x}", ".."])
def test_a_name_that_cannot_be_a_folder_is_refused(name):
    assert any("letters, digits" in line for line in problems({"study": [name]}))
    assert any("a name may contain" in line for line in problems({"registry": {name: OPENB_ENTRY}}))


def test_all_problems_at_once_each_with_its_file():
    lines = problems(
        {"correlation": {"cutoff_s": []}, "survival": {"max_steps": 1}},
        {"correlation": {"significance": 2}, "survival": {"max_steps": 2}},
    )
    assert [line.split(": ")[:2] for line in lines] == [
        ["my.yaml", "correlation.cutoff_s"],
        ["my1.yaml", "correlation.significance"],
        ["my1.yaml", "survival.max_steps"],
    ]


@pytest.mark.parametrize("name", ["all", "studies"])
def test_reserved_names_are_refused(name):
    lines = problems({"study": [name], "registry": {name: OPENB_ENTRY}})
    assert f"my.yaml: registry.{name}: this name is reserved; choose another name for the trace, " in str(lines)


def test_a_problem_in_the_shipped_registry_names_its_file():
    message = r"^config/traces.yaml: sample.formt: .* did you mean format\? [^\n]*$"  # format is not also missing
    with pytest.raises(ConfigError, match=message):
        resolve([DEFAULTS], TRACES | {"sample": {"formt": "openb", "folder": "x"}})


def test_a_value_from_the_command_line_is_reported_as_such():
    with pytest.raises(ConfigError, match=r"^--config: study: 'smaple' .* did you mean sample\?"):
        resolve([DEFAULTS, ("--config", {"study": ["smaple"]})], TRACES)


# A document with every key. Tests misspell its keys.
FULL = yaml.safe_load((ROOT / "tests/fixtures/configuration.yaml").read_text(encoding="utf-8"))


def walk(value, parents=()):
    """Every key path in a document."""
    for key, item in value.items() if isinstance(value, dict) else []:
        yield (*parents, key)
        yield from walk(item, (*parents, key))


def full_document(path):
    """Copy the full document; return it and the mapping that holds the key of `path`."""
    config = parent = copy.deepcopy(FULL)
    for key in path[:-1]:
        parent = parent[key]
    return config, parent


# The names of traces, of features and of columns are free.
FREE = {
    ("registry",): [2],
    ("risk", "features"): [3, 4],
    ("registry", "table_too", "records", "columns"): [5],
}
KEYS = [
    path
    for path in walk(FULL)
    if not any(path[: len(parents)] == parents and len(path) in depths for parents, depths in FREE.items())
]
TABLE_KEYS = {"pods"}


def test_the_full_document_has_every_key_and_is_valid():
    assert {path[-1] for path in KEYS} - TABLE_KEYS == {path[-1] for path, _ in iterate_key_paths(SCHEMA)} - {"<name>"}
    assert resolved(FULL)["study"] == ["mine", "made"]


@PATIENT
@given(st.sampled_from(KEYS), st.data())
def test_a_misspelt_key_is_reported_with_its_path_and_nearest_key(path, data):
    right = path[-1]
    i = data.draw(st.integers(0, len(right) - 1))
    letter = data.draw(st.sampled_from("abcdefghijklmnopqrstuvwxyz_-"))
    slips = [
        right[:i] + right[i + 1 :],
        right[:i] + letter + right[i:],
        right[:i] + letter + right[i + 1 :],
        right[:i] + right[i : i + 2][::-1] + right[i + 2 :],
        right.capitalize(),
        right.replace("_", "-"),
    ]
    wrong = data.draw(st.sampled_from(slips))
    config, parent = full_document(path)
    # A typo may give another key: "task" of "tasks", "cpus" of "gpus".
    assume(wrong not in parent and wrong not in {key_path[-1] for key_path in KEYS})
    parent[wrong] = parent.pop(right)
    dotted = ".".join([*path[:-1], wrong])
    answer = [line for line in problems(config) if line.startswith(f"my.yaml: {dotted}: ")]
    assert len(answer) == 1
    match = re.search(r"no such (key|table); did you mean (\w+)\? Allowed here: ", answer[0])
    assert match and match[1] == ("table" if right in TABLE_KEYS else "key")


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.dates() | st.binary(max_size=2),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5) | st.integers(), inner),
    max_leaves=5,
)


@PATIENT
@given(st.sampled_from(list(walk(FULL))), ANYTHING)
@example(("survival", "max_steps"), 10**400)
@example(("quarantine", "max_share"), 10**400)
@example(("survival", "max_steps"), 1 << 40000)
@example(("study",), 1 << 40000)
@example(("registry", "mine", "title"), [1 << 40000])
@example(("registry", "mine", "format"), ["openb"])
@example(("registry", "made", "format"), {})
@example(("study",), [["sample"], {"a": 1}, 3, None])
def test_any_value_at_a_key_resolves_or_is_explained(path, value):
    config, parent = full_document(path)
    parent[path[-1]] = value
    try:
        dump(resolved(config))
    except ConfigError as error:
        for line in str(error).split("\n"):
            assert re.match(r"my\.yaml: \S.*: .*\.$", line), line


# Reading --------------------------------------------------------------------------------------------------

# ALIASES has ten lines and 10^9 values. CHAIN nests without repeating anything.
ALIASES = "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 10))
CHAIN = "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}]\n" for n in range(1, 3000))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            "study: [a]\na: b: c\n",
            "line 2, column 5: not valid YAML (mapping values are not allowed here); look at the",
        ),
        ("a:\n\t- 1", "line 2, column 1: not valid YAML (found character '\\t' that cannot start any token); indent"),
        ("a: 1\nb: 2\na: 3\n", "line 3, column 1: the key a appears twice (first in line 1)."),
        ("a:\n  b: 1\n  'b': 2\n", "line 3, column 3: the key b appears twice (first in line 2)."),
        ("- a\n", "found a list; expected keys with values"),
        ("# nothing\n", "the file is empty; expected keys with values"),
        ("a: 1\n---\nb: 1\n", "line 2, column 1: not valid YAML (but found another document)"),
        ("a: &x {b: *x}", "line 1, column 11: the value contains itself by an alias."),
        ("a: 2020-13-45", "line 1, column 4: '2020-13-45' is no date (month must be in 1..12); put it in quotes if"),
        ("a: !!timestamp x", "line 1, column 4: 'x' is no date; put it in quotes if it is a text."),
        ("a: " + "9" * 10**6, "line 1, column 4: a number of 1,000,000 characters; put it in quotes if it is a text."),
        ("a: !!python/name:os.system ''", "line 1, column 4: !!python/name:os.system is an unknown tag; remove"),
        ("{[1]: 2}", "line 1, column 2: not valid YAML (found unhashable key)"),
        ("a: " + "[" * 200_000, "line 1, column 53: nested too deeply; at most 50 levels are read."),
        (ALIASES, "line 7, column 15: too large; at most 300,000 values are read, with aliases expanded."),
        (CHAIN, "line 49, column 12: nested too deeply; at most 50 levels are read."),
        (b"a: 1\nb: \xff", "line 2: not UTF-8 text; save the file as UTF-8."),
        (b"a: 1\nb: \x01", "line 2, column 4: a character that YAML does not allow."),
    ],
)
def test_an_unreadable_file_reports_the_position(tmp_path, content, message):
    answer = yaml_error(tmp_path / "f.yaml", content)
    assert answer.startswith(f"my.yaml: {message}")
    assert "\n" not in answer


def test_a_missing_file_and_a_folder(tmp_path):
    with pytest.raises(ConfigError, match=r"^no/such\.yaml: there is no such file \(relative to"):
        load_yaml("no/such.yaml")
    with pytest.raises(ConfigError, match=r": it is a folder; expected a plain file\.$"):
        load_yaml(tmp_path)


def test_keys_are_text_and_merge_keys_work(tmp_path):
    path = tmp_path / "f.yaml"
    path.write_text("2020: 1\nno: &n {a: 1, b: 2}\nx: {<<: *n, b: 3}\n", encoding="utf-8-sig")
    assert load_yaml(path) == {"2020": 1, "no": {"a": 1, "b": 2}, "x": {"a": 1, "b": 3}}


@PATIENT
@given(content=st.binary(max_size=30) | st.text("ab:[]{}-&*!<'\"\n #|>%?,1=.", max_size=30))
def test_no_file_gives_a_traceback(tmp_path_factory, content):
    path = tmp_path_factory.getbasetemp() / "fuzz.yaml"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    try:
        assert isinstance(load_yaml(path), dict)
    except ConfigError as error:
        assert str(error).startswith(str(path))


# Snakemake ------------------------------------------------------------------------------------------------


def test_the_layers_of_a_run_in_the_order_of_precedence(tmp_path):
    """Snakemake appends the files of `configfile:` to those typed, and its own config turns numbers into texts."""
    defaults, typed, outside = tmp_path / "here/config.yaml", tmp_path / "here/sub/my.yaml", tmp_path / "outside.yaml"
    typed.parent.mkdir(parents=True)
    for number, file in enumerate((defaults, typed, outside)):
        file.write_text(f"study: [{number}]\n")
    options = SimpleNamespace(
        configfiles=[typed, outside], config_args=["survival={max_steps: 7}", "study=['2020', c]"]
    )
    workflow = SimpleNamespace(
        config_settings=options, configfiles=[typed, outside, defaults], workdir_init=tmp_path / "here"
    )
    assert read_layers(workflow) == [
        ("config.yaml", {"study": [0]}),
        ("sub/my.yaml", {"study": [1]}),
        (str(outside), {"study": [2]}),
        ("--config", {"survival": {"max_steps": 7}, "study": ["2020", "c"]}),
    ]


def test_overrides_merge_and_an_invalid_one_is_explained():
    settings = SimpleNamespace(config_args=["aa={x: 1}", "aa={y: [2]}", "bb=", "cc='3'"], configfiles=[])
    workflow = SimpleNamespace(config_settings=settings, configfiles=[], workdir_init=".")
    layers = read_layers(workflow)
    assert layers == [("--config", {"aa": {"x": 1, "y": [2]}, "bb": None, "cc": 3})]
    settings.config_args = ["study=[a"]
    with pytest.raises(ConfigError, match=r"^--config: study: line 1, column 3: not valid YAML"):
        read_layers(workflow)

"""The file of failure reasons: the shipped file, a user's file, and the messages of a bad file."""

import re
from pathlib import Path

import pytest
from format_tables import FORMATS
from hypothesis import given
from hypothesis import strategies as st
from ttf.study.configuration.messages import ConfigError
from ttf.study.configuration.registry_options import find_option_file
from ttf.study.configuration.taxonomy import find_pattern_problem, has_reasons, load_taxonomy

ROOT = Path(__file__).parents[2]
SHIPPED = ROOT / "config/taxonomy.yaml"
TAXONOMY = load_taxonomy(SHIPPED)


@pytest.fixture
def read_taxonomy(tmp_path, monkeypatch):
    """Read the taxonomy with a user's file of this text."""
    monkeypatch.chdir(tmp_path)

    def read(text):
        Path("mine.yaml").write_text(text)
        return load_taxonomy(SHIPPED, "mine.yaml")

    return read


def list_problems(read, text):
    with pytest.raises(ConfigError) as error:
        read(text)
    lines = [line.removeprefix("taxonomy: mine.yaml: ") for line in str(error.value).split("\n")]
    return [re.sub(r", column \d+", "", line) for line in lines]


# The shipped file -----------------------------------------------------------------------------------------


def test_every_shipped_pattern_can_be_searched_for():
    for rule in TAXONOMY["rules"]:
        assert [find_pattern_problem(pattern) for pattern in rule["text"]] == [None] * len(rule["text"])


def test_every_shipped_reason_has_a_rule_and_no_word_leads_to_two_reasons():
    assert {rule["reason"] for rule in TAXONOMY["rules"]} == set(TAXONOMY["reasons"])
    for key in ("word", "state", "exit_code"):
        pairs = [(value.lower(), rule["reason"]) for rule in TAXONOMY["rules"] for value in rule[key]]
        assert len({value for value, _ in pairs}) == len(set(pairs)), key


# A user's file --------------------------------------------------------------------------------------------

LICENCE = """\
reasons:
  Licence server: {domain: [system software], deterministic: false}
  Killed: {domain: [hardware], deterministic: true}
rules:
  - reason: Licence server
    exit_code: ["77"]
  - {reason: Killed, state: [ZAPPED]}
"""


def test_a_users_rules_come_first_and_their_reasons_replace(read_taxonomy):
    taxonomy = read_taxonomy(LICENCE)
    blank = {"text": [], "word": [], "state": []}
    assert taxonomy["rules"][0] == blank | {"reason": "Licence server", "exit_code": ["77"]}
    assert taxonomy["rules"][2:] == TAXONOMY["rules"]
    assert taxonomy["reasons"]["Killed"] == {"domain": ["hardware"], "category": [], "deterministic": True}
    assert set(taxonomy["reasons"]) == set(TAXONOMY["reasons"]) | {"Licence server"}
    assert taxonomy["tail_kib"] == TAXONOMY["tail_kib"] == 64


def test_a_users_file_can_replace_the_shipped_one(read_taxonomy):
    taxonomy = read_taxonomy("extends: false\ntail_kib: 4\n" + LICENCE)
    assert list(taxonomy["reasons"]) == ["Licence server", "Killed"]
    assert len(taxonomy["rules"]) == 2
    assert taxonomy["tail_kib"] == 4


def test_a_rule_may_lead_to_a_shipped_reason_only_if_the_file_extends(read_taxonomy):
    rule = "rules: [{reason: Killed, exit_code: ['88']}]\n"
    assert read_taxonomy(rule)["rules"][0]["reason"] == "Killed"
    assert list_problems(read_taxonomy, "extends: false\n" + rule) == [
        "line 2: rules[0].reason: 'Killed' is not one of the reasons. Describe it there."
    ]


HEAD = "reasons:\n  New: {domain: [hardware], deterministic: false}\nrules:\n"


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("extend: true\n", ["line 1: extend: there is no such key; did you mean extends? Allowed here: "]),
        (
            "reasons:\n  A: {domain: [hardwar], deterministic: true}\n",
            ["line 2: reasons.A.domain[0]: 'hardwar' is not allowed; did you mean hardware? Allowed: user program, "],
        ),
        (
            "reasons:\n  A: {domain: [hardware]}\n",
            ["line 2: reasons.A.deterministic: is missing; expected true or false, for example true."],
        ),
        ("reasons:\n  A: {domain: [hardware], deterministic: true}\n", ["line 2: reasons.A: no rule leads to it"]),
        (
            HEAD + "- {reason: Nwe, state: [A]}\n- {reason: New, state: [A]}\n",
            ["line 4: rules[0].reason: 'Nwe' is not"],
        ),
        (
            HEAD + "- reason: New\n",
            ["line 4: rules[0]: needs at least one more key: text, word, state, exit_code."],
        ),
        (HEAD + "- {reason: New, exit_code: [137:0]}\n", ["line 4: rules[0].exit_code[0]: found the whole number"]),
        (HEAD + f"- reason: New\n  text: [{'a' * 501}]\n", ["line 5: rules[0].text[0]: is 501 characters long; at mo"]),
        (
            "tail_kib: 0\n",
            ["line 1: tail_kib: 0 is out of range; expected a whole number (1 to 1024), for example 64."],
        ),
        (
            HEAD + "- reason: New\n  text:\n  - fine\n  - '(a'\n  - '(?<=a)b'\n  - '(a)\\1'\n  - '\\p{L}{500}'\n",
            [
                "line 7: rules[0].text[1]: '(a' cannot be searched for: unclosed group.",
                "line 8: rules[0].text[2]: '(?<=a)b' cannot be searched for: look-around, including look-ahead",
                "line 9: rules[0].text[3]: '(a)\\\\1' cannot be searched for: backreferences are not supported.",
                "line 10: rules[0].text[4]: '\\\\p{L}{500}' cannot be searched for: Compiled regex exceeds size limit",
            ],
        ),
    ],
)
def test_each_kind_of_problem_names_file_line_and_key(read_taxonomy, text, lines):
    problems = list_problems(read_taxonomy, text)
    assert [line[: len(start)] for line, start in zip(problems, lines, strict=True)] == lines


def test_a_missing_file_or_invalid_yaml_is_refused(read_taxonomy, tmp_path):
    with pytest.raises(ConfigError, match=r"^taxonomy: nowhere\.yaml: there is no such file "):
        load_taxonomy(SHIPPED, "nowhere.yaml")
    assert list_problems(read_taxonomy, "a: [b\n")[0].startswith("line 2: not valid YAML")


@given(st.text("ab(){}[]0123456789,|*+?.\\^$:-", max_size=25))
def test_any_pattern_is_searched_for_or_explained_on_one_line(pattern):
    problem = find_pattern_problem(pattern)
    assert problem is None or re.fullmatch(r"[^\n]+\.", problem)


# Traces that have reasons ---------------------------------------------------------------------------------


def test_traces_that_have_a_taxonomy():
    def check(format, **entry):
        return has_reasons(entry, FORMATS[format], TAXONOMY)

    assert check("sacct") and check("helios") and check("acme")
    assert not check("pai2020") and not check("openb") and not check("philly") and not check("titan")
    table_entry = {"mapping": {"job_id": "j"}, "outcomes": {"success": ["OK"], "failure": ["FAILED"]}}
    assert not check("table", **table_entry)
    assert check("table", **table_entry | {"outcomes": {"failure": ["FAILED", "Node-Fail"]}})
    assert check("table", **table_entry | {"mapping": {"job_id": "j", "reason": "why"}})
    assert check("table", **table_entry | {"mapping": {"job_id": "j", "exit_code": "rc"}})


def test_log_tails_must_exist_and_need_a_format_with_jobs(tmp_path):
    with pytest.raises(ConfigError, match=r"^registry\.t\.log_tails: logs belong to jobs, and the format titan"):
        find_option_file("log_tails", "t", {"format": "titan", "log_tails": "x"}, FORMATS["titan"])
    with pytest.raises(ConfigError, match=r"^registry\.t\.log_tails: no/such: there is no such file"):
        find_option_file("log_tails", "t", {"format": "openb", "log_tails": "no/such"}, FORMATS["openb"])

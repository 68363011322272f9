"""An invalid configuration gives one message with file, line and column, in bounded time and memory."""

import time
from pathlib import Path

import pytest
from faults.configurations import PLACES, checked, mutated, prepared
from ttf.study.configuration.check import check_typed_layers, read_typed_layers
from ttf.study.configuration.config import DEFAULTS, resolve
from ttf.study.configuration.messages import LONGEST_LINE, MOST_LINES, WIDTH, ConfigError
from ttf.study.configuration.named_files import TABLE_MB, require_file
from ttf.study.configuration.yaml_files import load_yaml
from ttf.study.study import Study

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch) -> Path:
    """The working folder of the command. It contains unusable files."""
    monkeypatch.chdir(prepared(tmp_path / "folder"))
    return tmp_path / "folder"


def refusal_message(text: str | bytes, *words: str) -> str:
    """Return the error message for a configuration file with this content."""
    Path("my.yaml").write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ConfigError) as error:
        resolve(
            [("config/config.yaml", load_yaml(DEFAULTS)), *read_typed_layers(["my.yaml"], words)], {}, {"table": []}
        )
    return str(error.value)


def test_mutated_configurations_are_accepted_or_refused_in_words(folder):
    small = [(name, content) for name, content in mutated(2026, 15) if len(content) < 10_000]
    verdicts = [checked(name, content, folder) for name, content in small]
    assert {verdict.name: verdict.words for verdict in verdicts if verdict.answer == "fault"} == {}
    assert {verdict.answer for verdict in verdicts} == {"accepted", "refused"}


@pytest.mark.parametrize("path", sorted({*PLACES} - {"unreadable"}))
def test_no_file_blocks_or_exhausts_memory(path):
    with pytest.raises(ConfigError, match=f"^{path}: "):
        load_yaml(path)
    start = time.process_time()
    with pytest.raises(ConfigError, match=f"^{path}: "):
        read_typed_layers([path], [])
    assert time.process_time() - start < 1


@pytest.mark.parametrize("path", ["fifo", "zero", "folder", "loop", "dangling", "huge", "a\0b", "a" * 5000])
def test_a_named_file_is_checked_before_it_is_opened(path):
    """This covers health events, loss logs, log endings and jobs to score."""
    with pytest.raises(ConfigError, match=r"^registry.mine.loss_log: "):
        require_file(path, "registry.mine.loss_log", TABLE_MB)


def test_a_folder_without_an_analysis_is_refused_by_name(tmp_path):
    (tmp_path / "etc" / "apt").mkdir(parents=True)
    with pytest.raises(ConfigError, match=r"^analyses: .*/etc: holds no analysis; expected a folder with __init__.py"):
        Study([("my.yaml", {"study": ["sample"], "analyses": [str(tmp_path / "etc")]})])


def test_a_problem_names_the_line_and_column_of_its_layer():
    lines = refusal_message("study: [a]\nsurvival:\n  max_stps: 3\nettr: {seed: x}\nregistry:\n  a: {}\n").split("\n")
    positions = [line.partition(": ")[2].partition(": ")[0] for line in lines]
    assert positions[:3] == ["line 3, column 3", "line 4, column 8", "line 6, column 3"]
    assert lines[0].startswith(
        "my.yaml: line 3, column 3: survival.max_stps: there is no such key; did you mean max_ste"
    )
    # A merged value is reported at its source.
    message = refusal_message("registry:\n  a: &a {format: tabel}\n  b: {<<: *a, folder: x}\n")
    assert "my.yaml: line 2, column 10: registry.b.format: " in message


def test_a_message_fits_a_screen():
    lines = refusal_message(f"study: [sample]\nclaims: [{', '.join(['1'] * 5000)}]\n").split("\n")
    assert sum(-(-len(line) // WIDTH) for line in lines) <= MOST_LINES + 1 < 37
    assert lines[0].startswith("my.yaml: line 2, column 10: claims[0]: found the whole number 1; expected text")
    assert lines[-1] == f"... and at least {200 - len(lines) + 1} more. Fix these first."
    names = ", ".join(f"name_{number}: {{format: table}}" for number in range(300))
    message = refusal_message(f"study: [missing]\nregistry: {{{names}}}\n")
    assert max(map(len, message.split("\n"))) <= LONGEST_LINE + 4


def test_control_characters_are_escaped():
    assert "\\x1b[2J" in refusal_message('study: [sample]\ntaxonomy: "\\e[2J"\n"\\e[2J": 1\n')
    assert "\\u202e" in refusal_message('study: [sample]\n"\u202etxt": 1\n')


@pytest.mark.parametrize(
    "words", [["study"], ["=3"], ["9=1"], ["study=[a"], ["study=" + "[" * 90_000], ["s=" + "\udcff"]]
)
def test_invalid_config_arguments(words):
    with pytest.raises(ConfigError, match=r"^--config: "):
        read_typed_layers([], words)


def test_a_template_is_refused_before_its_code_runs(capsys):
    Path("my.yaml").write_text('study: [sample]\n__use_yte__: true\nname: ?open("owned", "w")\n')
    with pytest.raises(SystemExit):
        check_typed_layers(
            ["--cores", "1", "--configfile", "my.yaml", "--config", "study=[sample]", "--", "pdf", "all"]
        )
    assert "my.yaml: line 2, column 1: '__use_yte__': templates are not supported" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "message"),
    [("x = (", "line 1: it cannot be imported (SyntaxError"), ("\n1 / 0", "line 2: it cannot be imported (ZeroDiv")],
)
def test_a_user_analysis_that_cannot_be_imported(folder, text, message):
    name = f"broken_{len(text)}"
    Path("mine", name).mkdir(parents=True)
    Path("mine", name, "__init__.py").write_text(text)
    with pytest.raises(ConfigError) as error:
        Study([("my.yaml", {"study": ["sample"], "analyses": [str(folder / "mine")]})])
    assert message in str(error.value)
    assert f"{name}/__init__.py: " in str(error.value)

"""What README and docs tell people to type, as it stands there: run, or planned where it would take long.

Every block marked `sh` is run by a shell. Stand-ins: `git clone` copies this checkout, `sacct` and `sacctmgr` print
dumps of a real Slurm; `make` and `snakemake` plan, but for the first study and what is quick. What only says here what
it would do is run by the test that RUN_BY names.
"""

import json
import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from acceptance import CHROMIUM, browsing
from named_cells import wrong_cells
from sacct_story import CLUSTER_FIELDS, FIELDS, FIXTURES, NODE_FIELDS
from study.threshold_file import build_number_pattern
from study_runs import ROOT, clone, environment, pods, write_pods

DOCS = sorted(path for pattern in ("*.md", "docs/*.md", "config/*.md") for path in ROOT.glob(pattern))
BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.DOTALL | re.MULTILINE)
BLOCKS = [(path, text) for path in DOCS for text in BLOCK.findall(path.read_text(encoding="utf-8"))]
README = (ROOT / "README.md").read_text(encoding="utf-8")
FIRST = BLOCK.findall(README)[0]
# Those with a key: tests/unit/test_signing.py; those of the tutorial: test_tutorial.py.
OTHERS = [
    (path, text)
    for path, text in BLOCKS
    if text != FIRST and path.name != "tutorial.md" and not re.search("snakedeploy|my_slurm|ssh-keygen|cosign", text)
]
LONGEST_README = 700
(PAGE,) = re.findall(r"The page is `(.*?)`", README)
# Commands that look at a finished study, or only name what they would do.
QUICK = ("verify", "check", "explain", "remove", "score")
PLANNED = ("report", "pdf", "publish", "archive")
# Command -> the test that runs it, or the file that has it run.
RUN_BY = {
    "make report PROFILE=slurm": "tests/slurm/test_study_on_slurm.py::test_the_sample_study_in_16_shares",
    "make report PROFILE=kubernetes": "tests/store/test_study_in_a_store.py::"
    "test_a_study_in_a_store_gives_the_bytes_of_one_on_the_disk",
    "make snakemake-report": "tests/workflow/test_publish.py::test_snakemake_report_has_the_tables_and_charts_by_theme",
    "make check-resources": "tests/unit/test_resources.py::test_a_job_that_used_more_than_it_asks_for_is_named",
    "make gallery": "tests/unit/test_badges.py::test_each_badge_is_up_to_date",
    "make rules": "tests/workflow/test_rules.py::test_rules_are_found_by_their_names",
    "make docs": "tests/unit/test_dictionary.py::test_the_dictionary_in_the_docs_is_that_of_the_contracts",
    "make coverage": "tests/unit/test_coverage.py",
    "make bench": "tests/unit/test_bench.py::test_the_docs_say_what_was_measured",
    "make bench-growth": "tests/unit/test_bench.py::test_the_docs_say_what_was_measured",
    "make format": "tests/unit/test_style.py::test_clean",
    "make lint": "tests/unit/test_style.py::test_clean",
    "make lock": "tests/unit/test_environment.py::test_locks_hold_hashes_and_no_address",
    "make test": ".ci/run",
    "make test ONLY=unit/test_cox.py": "tests/workflow/test_studies.py::"
    "test_only_is_a_folder_or_a_file_or_an_expression",
    "make help": "tests/workflow/test_studies.py::test_help_names_every_target_with_the_variables_that_it_takes",
    "make test-tools": ".ci/run",
    "make test-module": ".ci/run",
    "make test-slurm": ".ci/run",
    "make test-faults": "tests/workflow/test_faults.py::test_no_case_falls_short",
    "make test-store": "tests/store/test_study_in_a_store.py",
    "snakedeploy": "tests/module/test_module.py::test_snakedeploy_and_github_give_the_same_bytes",
}
# The real commands, by their full names, as these stand before them on the PATH.
SHIMS = {
    "git": '#!/bin/sh\ncp -a "$DOCS_CLONE" "$(basename "$2")"\n',
    "snakemake": '#!/bin/sh\nexec "$DOCS_SNAKEMAKE" --dry-run "$@"\n',
    "sacct": '#!/bin/sh\nexec "$DOCS_PYTHON" "$DOCS_SACCT" "$@"\n',
    "sacctmgr": f"""#!/bin/sh
test "$TZ $SLURM_TIME_FORMAT" = "UTC %s" || exit 1
case "$*" in
  "-P show event All_Time Event=Node format={NODE_FIELDS}") cat "{FIXTURES}/node_events.txt";;
  "-P show event All_Time Event=Cluster format={CLUSTER_FIELDS}") cat "{FIXTURES}/cluster_events.txt";;
  *) exit 1;;
esac
""",
    "make": f"""#!/bin/sh
case "$* " in
  "report ") [ -e results ] || exec {shutil.which("make")} "$@";;
  {"|".join(f'"{target} "*' for target in QUICK)}) exec {shutil.which("make")} "$@";;
  *PROFILE=*) ;;
  {"|".join(f'"{target} "*' for target in PLANNED)})
    for word; do case "$word" in *=*) export "$word";; esac; done
    eval "$({shutil.which("make")} -n "$@" | sed -n 's/run_study.py/& --dry-run/p')"; exit;;
esac
exec {shutil.which("make")} -n "$@"
""",
}
SACCT = f"""
import sys
more = "FailedNode" if {{more}} else ""
if "--helpformat" in sys.argv:
    print("Account             AdminComment        {FIELDS.replace(",", "   ")}\\n" + more)
else:
    asked = sys.argv[sys.argv.index("-o") + 1]
    assert asked == ",".join(filter(None, ["{FIELDS}", more])), asked
    head, *rows = open({str(FIXTURES / "real_readme.txt")!r}).read().splitlines()
    print("\\n".join([head + (more and "|" + more), *(row + (more and "|") for row in rows)]))
"""


@pytest.fixture(scope="module")
def world(tmp_path_factory) -> tuple[Path, dict[str, str]]:
    """A folder to type in, and the environment of a shell in it."""
    base = tmp_path_factory.mktemp("docs")
    shims = base / "shims"
    shims.mkdir()
    for name, text in SHIMS.items():
        (shims / name).write_text(text)
        (shims / name).chmod(0o755)
    write_sacct(base, more=True)
    env = environment()
    real = {"DOCS_CLONE": clone(base / "clone"), "DOCS_SACCT": base / "sacct.py", "DOCS_PYTHON": sys.executable}
    real["DOCS_SNAKEMAKE"] = Path(sys.executable).with_name("snakemake")
    path = f"{shims}{os.pathsep}{env['PATH']}"
    return base, env | {name: str(value) for name, value in real.items()} | {"PATH": path, "EDITOR": "true"}


def write_sacct(base: Path, more: bool) -> None:
    (base / "sacct.py").write_text(SACCT.format(more=more))


def typed(text: str, folder: Path, env: dict[str, str]) -> str:
    """What a shell prints of it; the shims stay in front when an environment is activated."""
    keep = f'\nhash -r; export PATH="{env["PATH"]}"\n'
    text = text.replace(". .venv/bin/activate\n", ". .venv/bin/activate" + keep)
    done = subprocess.run(["bash", "-e", "-c", text], cwd=folder, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, text + done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def study(world) -> Path:
    """The checkout in which the README's first commands have made a study, with what the other commands name."""
    base, env = world
    typed(FIRST, base, env)
    checkout = base / "time-to-failure"
    given = (ROOT / "docs/your-data.md").read_text(encoding="utf-8")
    (checkout / "my.yaml").write_text(re.search(r"```yaml\n(# my.yaml\n.*?)```", given, re.DOTALL)[1])
    write_pods(type("Study", (), {"folder": checkout}), pods(20))
    shutil.copytree(checkout / "raw/mine", checkout / "path/to/the/csv/files")
    (checkout / "path/to/folder").mkdir()
    shutil.copy(FIXTURES / "real_readme.txt", checkout / "path/to/folder/2025.txt")
    (checkout / "runs").mkdir()
    times = "2025-01-01 00:00:00,2025-01-01 01:00:00"
    (checkout / "runs/2025.csv").write_text(f"id,owner,started,ended,state,gpus\n1,ann,{times},done,8\n")
    given = (ROOT / "docs/risk.md").read_text(encoding="utf-8")
    (checkout / "new_jobs.csv").write_text(re.search(r"```csv\n(.*?)```", given, re.DOTALL)[1])
    return checkout


def test_the_first_commands_make_the_page_that_is_named(study):
    assert (study / PAGE).is_file()


@pytest.mark.skipif(not CHROMIUM, reason="chromium is not installed: make test-tools")
def test_the_picture_in_the_readme_is_of_the_page_that_is_made(study):
    gallery = runpy.run_path(str(ROOT / "docs/gallery.py"))
    with browsing() as browser:
        _, words = gallery["first_screen"](browser, study / PAGE)
    picture = (ROOT / "docs/gallery/first-screen.png").read_bytes()
    beside = (ROOT / "docs/gallery/first-screen.txt").read_text(encoding="utf-8")
    assert beside == gallery["with_picture"](words, picture), "make report, make gallery"


@pytest.mark.parametrize("text", [text for _, text in OTHERS], ids=[path.name for path, _ in OTHERS])
def test_the_commands_run(world, study, tmp_path, text):
    typed(text, tmp_path if text.startswith("git clone") else study, world[1])


@pytest.mark.parametrize("more", [True, False])
def test_the_dump_of_the_readme_is_what_the_format_reads(world, study, more):
    """Whether or not this Slurm has the newer fields; tests/slurm/test_accounting.py asks a real one."""
    base, env = world
    write_sacct(base, more)
    (dump, *_) = [text for _, text in BLOCKS if "sacct --helpformat" in text]
    typed(dump, study, env)
    head = (study / "my_slurm/2025.txt").read_text().splitlines()[0]
    assert head == FIELDS.replace(",", "|") + ("|FailedNode" if more else "")
    if more:
        (report,) = [text for text in BLOCK.findall(README) if "DATA=my_slurm" in text]
        said = typed(report, study, env)
        assert "sacct: 2025.txt has the columns" in said
        named = (study / "results/studies/my_slurm/study.yaml").read_text()
        assert "node_events: [my_slurm/cluster.txt, my_slurm/nodes.txt]" in named
        assert "render_page" in said


def commands(text: str) -> list[str]:
    """The commands of a block, one to a line, without comments."""
    lines = text.replace("\\\n", " ").splitlines()
    return [part.strip() for line in lines for part in line.split("  #")[0].split(" && ") if part.strip()]


def is_run(command: str) -> bool:
    target = command.split()[1] if command.startswith("make ") else ""
    return "PROFILE=" not in command and (target in (*QUICK, *PLANNED) or not target)


@pytest.mark.parametrize("command", sorted({command for _, text in BLOCKS for command in commands(text)}))
def test_a_command_that_is_not_run_here_is_run_by_a_test(command):
    asked = re.sub(r"\s+#.*|CONFIG=\S+", "", command).strip()
    if asked.startswith("make ") and not is_run(asked):
        file, _, test = RUN_BY[asked].partition("::")
        text = (ROOT / file).read_text(encoding="utf-8")
        assert (f"def {test}(" if test else asked if file == ".ci/run" else "def test_") in text
    elif asked.startswith("snakedeploy"):
        file, _, test = RUN_BY["snakedeploy"].partition("::")
        assert f"def {test}(" in (ROOT / file).read_text(encoding="utf-8")


@pytest.mark.parametrize("path", DOCS, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_command_stands_in_a_block_that_is_not_run(path):
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", path.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    typed = re.compile(r"^\s*(make|snakemake|git|sacct|TZ=|export|python3?|conda|pip) ", re.MULTILINE)
    assert not [text for kind, text in blocks if kind not in ("sh", "dockerfile") and typed.search(text)]


@pytest.mark.parametrize("path", DOCS, ids=lambda path: str(path.relative_to(ROOT)))
def test_commands_within_sentences_are_there(path):
    """Each `make target` is one of the Makefile, with variables that it has."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for command in re.findall(r"`(make [^`]+)`", path.read_text(encoding="utf-8")):
        for word in shlex.split(command)[1:]:
            name, is_variable, _ = word.partition("=")
            there = rf"\$\({name}\)|^{name} \?=|^(?:COMMON|TYPED) :=.*\b{name}\b" if is_variable else rf"^{name}:"
            assert re.search(there, makefile, re.MULTILINE), word


def anchors(text: str) -> set[str]:
    """Of the headings, as a forge makes them."""
    heads = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", head.lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize("path", DOCS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_leads_somewhere(path):
    for link in re.findall(r"\]\((?!https?:|\.\./\.\./actions)([^)\s]+)\)", path.read_text(encoding="utf-8")):
        name, _, anchor = link.partition("#")
        file = path.parent / name if name else path
        assert file.exists(), link
        assert not anchor or anchor in anchors(file.read_text(encoding="utf-8")), link


def test_the_readme_is_short_and_in_its_order():
    assert len(README.split()) <= LONGEST_README
    order = ["# Try it", "# Your data", "# What you get", "# What it costs", "# What it cannot tell", "# How to cite"]
    assert all(README.index(first) < README.index(second) for first, second in pairwise(order))


def test_every_number_of_a_study_has_its_key_in_the_docs(study):
    """docs/metrics.md; what stands beside a number, its interval, is not listed."""
    known = build_number_pattern()
    keys = json.loads((study / "results/sample_slurm/metrics.json").read_text())
    beside = re.compile(r".*(ci|failure_share|median)_(low|high)(_.*)?|.*\.(cluster_by|clusters)")
    unknown = [key for key in keys if not known.fullmatch(key) and not beside.fullmatch(key)]
    assert not unknown, "make report TRACE=all, make docs"


def test_every_number_of_a_study_is_the_cell_that_it_names(study):
    assert wrong_cells(study / "results/sample_slurm") == []

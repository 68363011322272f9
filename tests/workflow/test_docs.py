"""Run the commands of README and docs verbatim, or plan them if a run takes long.

A shell runs every block marked `sh`. Stand-ins: `git clone` copies this checkout, `sacct` and `sacctmgr` print dumps
of a real Slurm; `make` and `snakemake` only plan, except for the first study and quick commands. RUN_BY names the
tests that run the commands that are only planned here.
"""

import html
import json
import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import csv_traces
import pytest
from acceptance import CHROMIUM, browsing, open_page
from contributing_recipe import write_example
from metric_cells import wrong_cells
from sacct_story import CLUSTER_FIELDS, FIELDS, FIXTURES, NODE_FIELDS
from study_runs import ROOT, clone, clone_environment, pods, write_pods
from ttf.study.configuration.threshold_file import build_number_pattern

DOCS = sorted(path for pattern in ("*.md", "docs/*.md", "config/*.md") for path in ROOT.glob(pattern))
BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.DOTALL | re.MULTILINE)
BLOCKS = [(path, text) for path in DOCS for text in BLOCK.findall(path.read_text(encoding="utf-8"))]
README = (ROOT / "README.md").read_text(encoding="utf-8")
FIRST_BLOCK = BLOCK.findall(README)[0]
# Other files test these: tests/unit/test_signing.py those with a key, test_tutorial.py the tutorial.
OTHER_BLOCKS = [
    (path, text)
    for path, text in BLOCKS
    if text != FIRST_BLOCK
    and path.name != "tutorial.md"
    and not re.search("snakedeploy|my_slurm|ssh-keygen|cosign", text)
]
EXAMPLE = ROOT / "docs/example/lanl.html"
(PAGE,) = re.findall(r"The page is `(.*?)`", README)
# Commands that run a study, which are only planned here.
PLANNED = ("report", "pdf", "figures", "publish", "archive")
# Command -> the test or the file that runs it.
RUN_BY = {
    "make gallery": "tests/workflow/test_docs.py::test_the_picture_in_the_readme_is_of_the_page",
    "ttf report --profile slurm": "tests/slurm/test_study_on_slurm.py::test_the_sample_study_in_16_shares",
    "ttf report --profile kubernetes": "tests/store/test_study_in_a_store.py::"
    "test_a_study_in_a_store_gives_the_bytes_of_one_on_the_disk",
    'ttf report --snakemake "--report logs/snakemake-report.html"': "tests/workflow/test_publish.py::"
    "test_snakemake_report_has_the_tables_and_charts_by_theme",
    "make docs": "tests/unit/test_dictionary.py::test_the_dictionary_in_the_docs_is_that_of_the_contracts",
    "make coverage": "tests/unit/test_coverage.py",
    "make bench": "tests/unit/test_bench.py::test_the_docs_say_what_was_measured",
    "make format": "tests/unit/test_style.py::test_the_quick_hooks_pass",
    "make lint": "tests/unit/test_style.py::test_the_quick_hooks_pass",
    "make lock": "tests/unit/test_environment.py::test_locks_hold_hashes_and_no_address",
    "make test": ".ci/run",
    "make test ONLY=unit/test_cox.py": "tests/workflow/test_studies.py::"
    "test_only_is_a_folder_or_a_file_or_an_expression",
    "make help": "tests/workflow/test_studies.py::test_help_names_every_target",
    "make .venv-cluster/cluster.lock": "tests/slurm/test_study_on_slurm.py",
    "make .venv-kubernetes/kubernetes.lock": "tests/store/test_study_in_a_store.py",
    "make test-tools": ".ci/run",
    "make test-module": ".ci/run",
    "make test-slurm": ".ci/run",
    "make test-faults": "tests/workflow/test_faults.py::test_no_case_falls_short",
    "make test-store": "tests/store/test_study_in_a_store.py",
    "snakedeploy": "tests/module/test_module.py::test_snakedeploy_and_github_give_the_same_bytes",
}
# Stand-ins call real commands by their full names, because they precede them on the PATH.
SHIMS = {
    "git": '#!/bin/sh\ncp -a "$DOCS_CLONE" "$(basename "${3:-$2}")"\n',
    # tests/module/test_package.py installs the package.
    "pip": "#!/bin/sh\n",
    # tests/workflow/test_recipes.py has pods.
    "kubectl": """#!/bin/sh
echo '{"items": [{"metadata": {"uid": "1", "creationTimestamp": "2025-01-06T00:00:00Z"}, "spec": {"containers": []},
  "status": {"phase": "Pending"}}]}'
""",
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
  "report TRACE="*) exec {sys.executable} -m ttf report --dry-run --trace "${{2#TRACE=}}";;
esac
exec {shutil.which("make")} -n "$@"
""",
    "ttf": f"""#!/bin/sh
case "$* " in
  *--profile*|*--snakemake*) exit;;
  {"|".join(f'"{command} "*' for command in PLANNED)}) exec {sys.executable} -m ttf "$@" --dry-run;;
esac
exec {sys.executable} -m ttf "$@"
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
def shell(tmp_path_factory) -> tuple[Path, dict[str, str]]:
    """Return a working folder and the environment of a shell in it."""
    base = tmp_path_factory.mktemp("docs")
    shims = base / "shims"
    shims.mkdir()
    for name, text in SHIMS.items():
        (shims / name).write_text(text)
        (shims / name).chmod(0o755)
    write_sacct(base, has_failed_node=True)
    env = clone_environment(base / "time-to-failure")
    paths = {"DOCS_CLONE": clone(base / "clone"), "DOCS_SACCT": base / "sacct.py", "DOCS_PYTHON": sys.executable}
    paths["DOCS_SNAKEMAKE"] = Path(sys.executable).with_name("snakemake")
    path = f"{shims}{os.pathsep}{env['PATH']}"
    return base, env | {name: str(value) for name, value in paths.items()} | {"PATH": path, "EDITOR": "true"}


def write_sacct(base: Path, has_failed_node: bool) -> None:
    (base / "sacct.py").write_text(SACCT.format(more=has_failed_node))


def run_shell(text: str, folder: Path, env: dict[str, str]) -> str:
    """Run the text in a shell and return its output; the shims stay first on the PATH after activation."""
    keep = f'\nhash -r; export PATH="{env["PATH"]}"\n'
    text = text.replace(". .venv/bin/activate\n", ". .venv/bin/activate" + keep)
    process = subprocess.run(
        ["bash", "-e", "-c", text], cwd=folder, env=env, capture_output=True, text=True, check=False
    )
    assert process.returncode == 0, text + process.stdout + process.stderr
    return process.stdout + process.stderr


@pytest.fixture(scope="module")
def study(shell) -> Path:
    """Return the checkout with the study of the README's first commands and the files the others name."""
    base, env = shell
    run_shell(FIRST_BLOCK, base, env)
    checkout = base / "time-to-failure"
    document = (ROOT / "docs/your-data.md").read_text(encoding="utf-8")
    (checkout / "my.yaml").write_text(re.search(r"```yaml\n(# my.yaml\n.*?)```", document, re.DOTALL)[1])
    write_pods(type("Study", (), {"folder": checkout}), pods(20))
    shutil.copytree(checkout / "raw/mine", checkout / "path/to/the/csv/files")
    (checkout / "path/to/folder").mkdir()
    for environment_folder in (".venv-cluster", ".venv-kubernetes"):
        (checkout / environment_folder / "bin").mkdir(parents=True)
        (checkout / environment_folder / "bin/activate").touch()
    write_example(checkout)
    shutil.copy(FIXTURES / "real_readme.txt", checkout / "path/to/folder/2025.txt")
    csv_traces.write_runs(checkout / "runs.csv")
    document = (ROOT / "docs/risk.md").read_text(encoding="utf-8")
    (checkout / "new_jobs.csv").write_text(re.search(r"```csv\n(.*?)```", document, re.DOTALL)[1])
    return checkout


def test_the_first_commands_make_the_page_that_is_named(study):
    assert (study / PAGE).is_file()


def test_the_finding_of_the_readme_is_on_the_page(study):
    finding = README.partition("*A finding")[2].partition("\n\n")[0]
    text = re.sub(r"<[^>]+>", "", (study / PAGE).read_text(encoding="utf-8"))
    numbers = re.findall(r"61 of 68 infrastructure failures|[\d,]+,\d+(?= GPU)|[\d.]+%", finding)
    assert len(numbers) == 3 and not [number for number in numbers if number not in text]


def test_the_page_of_a_real_trace_has_the_numbers_of_the_readme_and_no_path():
    page = EXAMPLE.read_text(encoding="utf-8")
    assert len(page) < 3_000_000 and not re.search(r"(?<![\w./])/(home|root|tmp|work|Users|opt|srv)/", page)
    text = html.unescape(re.sub(r"<[^>]+>", "", page)).replace("\u00a0", " ")
    finding = README.partition("*From real records:*")[2].partition("\n\n")[0]
    (row,) = re.findall(r"^\| Nodes at LANL (.*)$", README, re.MULTILINE)
    numbers = re.findall(r"\d(?:[\d,.–]*\d)?(?: days|%)?", finding.replace("system 19", "") + row)
    assert len(numbers) > 12 and not [number for number in numbers if number not in text]


@pytest.mark.skipif(not CHROMIUM, reason="chromium is not installed: make test-tools")
@pytest.mark.parametrize("name", ["first-screen", "lanl"])
def test_the_picture_in_the_readme_is_of_the_page(name, request):
    file = EXAMPLE if name == "lanl" else request.getfixturevalue("study") / PAGE
    gallery = runpy.run_path(str(ROOT / "tools/docs/gallery.py"))
    with browsing() as browser:
        with open_page(browser, file) as (_, faults):
            assert faults == []
        _, page_text = gallery["first_screen"](browser, file)
    picture = (ROOT / f"docs/gallery/{name}.png").read_bytes()
    recorded_text = (ROOT / f"docs/gallery/{name}.txt").read_text(encoding="utf-8")
    assert recorded_text == gallery["with_picture"](page_text, picture, name), "make report, make gallery"


@pytest.mark.parametrize("text", [text for _, text in OTHER_BLOCKS], ids=[path.name for path, _ in OTHER_BLOCKS])
def test_the_commands_run(shell, study, tmp_path, text):
    run_shell(text, tmp_path if text.startswith("git clone") else study, shell[1])


@pytest.mark.parametrize("has_failed_node", [True, False])
def test_the_dump_of_the_readme_is_what_the_format_reads(shell, study, has_failed_node):
    """Slurm may lack the newer fields; tests/slurm/test_accounting.py tests a real one."""
    base, env = shell
    write_sacct(base, has_failed_node)
    (dump, *_) = [text for _, text in BLOCKS if "sacct --helpformat" in text]
    run_shell(dump, study, env)
    head = (study / "my_slurm/2025.txt").read_text().splitlines()[0]
    assert head == FIELDS.replace(",", "|") + ("|FailedNode" if has_failed_node else "")
    if has_failed_node:
        (report,) = [text for text in BLOCK.findall(README) if "report my_slurm" in text]
        output = run_shell(report, study, env)
        assert "sacct: 2025.txt has the columns" in output
        study_file = (study / "results/studies/my_slurm/study.yaml").read_text()
        assert "node_events: [my_slurm/cluster.txt, my_slurm/nodes.txt]" in study_file
        assert "render_page" in output


def commands(text: str) -> list[str]:
    """Return the commands of a block without comments."""
    lines = text.replace("\\\n", " ").splitlines()
    return [part.strip() for line in lines for part in line.split("  #")[0].split(" && ") if part.strip()]


def is_run(command: str) -> bool:
    return command.startswith("make report") or (command.startswith("ttf ") and "--profile" not in command)


@pytest.mark.parametrize("command", sorted({command for _, text in BLOCKS for command in commands(text)}))
def test_a_command_that_is_not_run_here_is_run_by_a_test(command):
    bare_command = re.sub(r"\s+#.*|--config \S+", "", command).strip()
    if bare_command.startswith(("make ", "ttf ")) and not is_run(bare_command):
        file, _, test = RUN_BY[bare_command].partition("::")
        text = (ROOT / file).read_text(encoding="utf-8")
        assert (f"def {test}(" if test else bare_command if file == ".ci/run" else "def test_") in text
    elif bare_command.startswith("snakedeploy"):
        file, _, test = RUN_BY["snakedeploy"].partition("::")
        assert f"def {test}(" in (ROOT / file).read_text(encoding="utf-8")


@pytest.mark.parametrize("path", DOCS, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_command_stands_in_a_block_that_is_not_run(path):
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", path.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    run_shell = re.compile(r"^\s*(make|snakemake|git|sacct|TZ=|export|python3?|conda|pip) ", re.MULTILINE)
    assert not [text for kind, text in blocks if kind not in ("sh", "dockerfile") and run_shell.search(text)]


@pytest.mark.parametrize(
    "path",
    [path for path in DOCS if path.name not in ("removed.md", "CHANGELOG.md")],
    ids=lambda path: str(path.relative_to(ROOT)),
)
def test_commands_within_sentences_are_there(path):
    """The Makefile defines each `make target` and its variables."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for command in re.findall(r"`(make [^`]+)`", path.read_text(encoding="utf-8")):
        for word in shlex.split(command)[1:]:
            name, is_variable, _ = word.partition("=")
            definition = (
                rf"\$\({name}\)|^{name} \?=|^TYPED :=.*\b{name}\b"
                if is_variable
                else rf"^(?:[\w-]+ )?{re.escape(name)}[: ]"
            )
            assert re.search(definition, makefile, re.MULTILINE), word


def anchors(text: str) -> set[str]:
    """Return the anchors that a forge derives from the headings."""
    heads = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", head.lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize("path", DOCS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_leads_somewhere(path):
    for link in re.findall(r"\]\((?!https?:|\.\./\.\./actions)([^)\s]+)\)", path.read_text(encoding="utf-8")):
        name, _, anchor = link.partition("#")
        file = path.parent / name if name else path
        assert file.exists(), link
        assert not anchor or anchor in anchors(file.read_text(encoding="utf-8")), link


def test_every_number_of_a_study_has_its_key_in_the_docs(study):
    """docs/metrics.md lists all keys except interval bounds."""
    documented_keys = build_number_pattern()
    keys = json.loads((study / "results/sample_slurm/metrics.json").read_text())
    bound_keys = re.compile(r".*(ci|failure_share|median)_(low|high)(_.*)?|.*\.(cluster_by|clusters)")
    unknown = [key for key in keys if not documented_keys.fullmatch(key) and not bound_keys.fullmatch(key)]
    assert not unknown, "ttf report --trace all, make docs"


def test_every_number_of_a_study_is_the_cell_that_it_names(study):
    assert wrong_cells(study / "results/sample_slurm") == []

"""Run the study as a user does, in a copy of the checkout."""

import atexit
import contextlib
import fcntl
import hashlib
import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import yaml
from samples.pack import packed_sample
from warm_snakemake import WarmSnakemake

ROOT = Path(__file__).parents[2]
CHECKOUT = (
    "Snakefile",
    "workflow",
    "scripts",
    "config",
    "profiles",
    "report",
    "environment.yml",
    "pyproject.toml",
    "README.md",
    "CITATION.cff",
)
SHARED_DATA = ROOT.parent / "shared" / "data"
WARM = WarmSnakemake()
# With these options the tests read Snakemake's own output.
OF_SNAKEMAKE = ("--dry-run", "-n", "--lint", "--list-rules", "--quiet", "--report", "--summary", "--verbose")


@dataclass(frozen=True)
class Checkout:
    """A folder that holds the workflow, in which `snakemake` runs."""

    folder: Path

    def snakemake(
        self, *arguments: str, check: bool = True, one_process: bool = False, **config
    ) -> subprocess.CompletedProcess:
        """Run snakemake here; `config` becomes a user's file, passed by --configfile.

        `one_process` takes half the time: for tests of a study's products rather than of its execution.
        """
        if config:
            (self.folder / "my.yaml").write_text(yaml.safe_dump(config))
            arguments = ("--configfile", "my.yaml", *arguments)
        if one_process:
            arguments = ("--cores", "1", *arguments)
        plugins = not set(arguments).intersection(OF_SNAKEMAKE)
        if plugins:
            arguments = ("--logger", "progress", *(() if one_process else ("--executor", "forks")), *arguments)
        process = WARM.run([*arguments], self.folder, environment(), one_process, plugins)
        if check:
            assert process.returncode == 0, process.stdout + process.stderr
        return process

    def report(self, *arguments: str, **options: str) -> subprocess.CompletedProcess:
        """Do as `ttf report` with these options, in one process, which takes half the time."""
        from ttf.commands.run import resolve_arguments
        from ttf.study.configuration.messages import ConfigError

        messages = io.StringIO()
        with contextlib.chdir(self.folder), contextlib.redirect_stderr(messages):
            try:
                settings = resolve_arguments(**dict.fromkeys(("study", "config", "trace", "data"), "") | options)
            except ConfigError as error:
                return subprocess.CompletedProcess(arguments, 1, "", f"{messages.getvalue()}error: {error}\n")
        process = self.snakemake(*settings, *arguments, check=False, one_process=True)
        return subprocess.CompletedProcess(
            arguments, process.returncode, process.stdout, messages.getvalue() + process.stderr
        )

    def ttf(self, *typed: str) -> subprocess.CompletedProcess:
        """Type `ttf` and these words here."""
        return WARM.run([*typed], self.folder, environment(), is_ttf=True)

    def planned(self, *arguments: str, **config) -> set[str]:
        """Return the rules that a run would execute now."""
        return {*read_planned(self.snakemake("--dry-run", *arguments, **config))}

    def hashes(self) -> dict[str, str]:
        """Return the SHA-256 of every file under results/."""
        results = self.folder / "results"
        return {
            str(path.relative_to(results)): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted(results.rglob("*"))
            if path.is_file()
        }

    @contextlib.contextmanager
    def appended(self, *files: str, text: str = "") -> Iterator[None]:
        """Append the text to each file for a while; default: a statement in a module, else an empty line."""
        paths = [self.folder / file for file in files]
        originals = [(path.read_bytes(), path.stat().st_mtime_ns) for path in paths]
        for path, (content, _) in zip(paths, originals, strict=True):
            addition = text or ("\nEDITED = True\n" if path.suffix == ".py" else "\n")
            path.write_bytes(content + addition.encode())
        try:
            yield
        finally:
            for path, (content, time_ns) in zip(paths, originals, strict=True):
                path.write_bytes(content)
                os.utime(path, ns=(time_ns, time_ns))

    def edit(self, file: str, old: str, new: str) -> None:
        path = self.folder / file
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new, 1))


def read_planned(process: subprocess.CompletedProcess) -> dict[str, int]:
    """Return the number of jobs by rule that a dry run printed."""
    text = process.stdout + process.stderr
    table = "" if "Nothing to be done" in text else text.split("Job stats:")[1].split("\ntotal")[0]
    jobs = {rule: int(count) for rule, count in re.findall(r"^(\w+) +(\d+)$", table, re.MULTILINE)}
    return {rule: count for rule, count in jobs.items() if rule not in ("all", "default")}


def hide_quarto() -> None:
    """Take Quarto off the PATH of this process and its children; REAL_QUARTO then names the program.

    Links to its other programs replace a folder that holds it, which may be /usr/local/bin.
    """
    if not (quarto := shutil.which("quarto")):
        return
    os.environ["REAL_QUARTO"] = str(Path(quarto).absolute())
    links = Path(tempfile.mkdtemp(prefix="path-without-quarto-"))
    atexit.register(shutil.rmtree, links)
    folders = os.environ["PATH"].split(os.pathsep)
    for index, folder in enumerate(folders):
        if shutil.which("quarto", path=folder):
            folders[index] = str(links / str(index))
            Path(folders[index]).mkdir()
            for program in Path(folder).absolute().iterdir():
                if program.name != "quarto":
                    (Path(folders[index]) / program.name).symlink_to(program)
    os.environ["PATH"] = os.pathsep.join(folders)


# A stand-in for Quarto, which no package index carries: same arguments, same warnings. Pandoc's warnings come among
# the information; those of Lua filters are coloured, and the colour ends on the next line.
_QUARTO = r"""#!/bin/sh
if [ "$1" = --version ]; then echo VERSION; exit 0; fi
if [ "$1 $3 $4 $5 $6" != "render --to html --output made.html" ]; then exit 2; fi
case "$QUARTO_LOG_LEVEL" in WARN | ERROR) exec 2> /dev/null ;; esac
{ sed '/\$body\$/,$d' page.html; cat "$2"; } > made.html
log() { printf "$1\n" >&2; }
log '\033[1mmetadata\033[22m\n  WARNING: "of the page"'
if grep -q nobody1900 "$2"; then log '[WARNING] Citeproc: citation nobody1900 not found'; fi
if grep -q fig-nothing "$2"; then log '\033[33mWARNING (refs.lua:128) Unable to resolve @fig-nothing\n\033[39m'; fi
if grep -q '::: open' "$2"; then log '\033[39mWARN: The following string was found in the document: :::'; fi
log 'Output created: made.html'
"""


def write_quarto(folder: Path, version: str = "1.10.18") -> str:
    """Write a stand-in for Quarto of this version into the folder; return a PATH that begins with it."""
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / "quarto"
    program.write_text(_QUARTO.replace("VERSION", version))
    program.chmod(0o755)
    return f"{folder}{os.pathsep}{os.environ['PATH']}"


def ttf_command(folder: Path, *typed: str) -> list[str]:
    """Return the command `ttf` of the checkout in this folder."""
    return ["env", f"PYTHONPATH={_join_packages(folder)}", sys.executable, "-m", "ttf", *map(str, typed)]


def clone_environment(folder: Path) -> dict[str, str]:
    """Return the environment in which the linked `ttf` is the one of this clone."""
    return environment() | {"PYTHONPATH": _join_packages(folder)}


def _join_packages(folder: Path) -> str:
    return os.pathsep.join(str(folder / name) for name in ("scripts", "workflow/plugins"))


def environment() -> dict[str, str]:
    """Return the environment of a rule, without the variables of the test runner."""
    # COLUMNS: pytest-xdist sets the terminal width for its workers, which moves line breaks. MAKE: `make` marks a
    # nested `make`.
    excluded_prefixes = ("PYTEST", "POLARS", "PYTHON", "COLUMNS", "MAKE", "MFLAGS")
    variables = {name: value for name, value in os.environ.items() if not name.startswith(excluded_prefixes)}
    return variables | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}


# The folder of what all of pytest's workers share, which conftest.py names.
SHARED: list[Path] = []


def make_once(name: str, make: Callable[[Path], None]) -> Path:
    """Return a shared folder; `make` makes it for the first worker that needs it."""
    folder = SHARED[0] / name
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.is_dir():
            building = Path(tempfile.mkdtemp(dir=SHARED[0])) / name
            make(building)
            building.rename(folder)
    return folder


def check_out(folder: Path) -> Checkout:
    """Copy the checkout, with bytecode and caches of a first start, which take two thirds of its time."""
    source = make_once("warm_checkout", _check_out_warm) if SHARED else None
    if source is None:
        _check_out_cold(folder)
    else:
        shutil.copytree(source, folder, dirs_exist_ok=True)
    return Checkout(folder)


def _check_out_cold(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name in CHECKOUT:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("*.pyc.*", ".snakemake"))
        else:
            shutil.copy2(source, folder / name)
    pack_tasks(folder, TASKS)


def _check_out_warm(folder: Path) -> None:
    _check_out_cold(folder)
    Checkout(folder).snakemake("--dry-run", **SMALL)
    for path in [*folder.iterdir(), *(folder / ".snakemake").iterdir()]:
        if path.name not in (*CHECKOUT, ".snakemake", "ttf-memory"):
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def clone(folder: Path) -> Path:
    """Copy the checkout with its Makefile; link the tests' environment as if `make` had installed it."""
    check_out(folder)
    for name in ("Makefile", "LICENSE", "locks", "tools", "docs"):
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy2
        copy(ROOT / name, folder / name)
    (folder / ".venv").mkdir()
    for part in ("bin", "lib", "lib64", "pyvenv.cfg"):
        (folder / ".venv" / part).symlink_to(Path(sys.prefix) / part)
    shutil.copy(ROOT / "locks/study.lock", folder / ".venv")
    return folder


def copy_study(study: Checkout, folder: Path) -> Checkout:
    """Copy the study into the folder, with the timestamps of its files."""
    return Checkout(Path(shutil.copytree(study.folder, folder / "checkout", symlinks=True)))


# Products and page of the study of one trace, `sample`; page of a study of several traces.
OWN = "results/studies/sample"
PAGE = f"{OWN}/report/index.html"
PAGE_OF_SEVERAL = "results/studies/study/report/index.html"


def pages_of_several(traces) -> list[str]:
    return [PAGE_OF_SEVERAL, *(PAGE_OF_SEVERAL.replace("index", trace) for trace in traces)]


def tables_without_sense(trace: Path) -> list[str]:
    """Return the tables in results/<trace> that contain NaN or infinity."""
    invalid_values = {"nan", "inf", "-inf"}
    files = sorted((trace / "tables").glob("*.csv"))
    return [
        file.name
        for file in files
        if invalid_values & set(re.split(r"[,\n]", file.read_text(encoding="utf-8").lower()))
    ]


# The study of a copy of the checkout, which has a smaller sample.
SMALL = {"study": ["sample"], "registry": {"sample": {}}}
SLURM = {"study": ["sample_slurm"], "ettr": {"target_gpus": 512}}
TASKS = 2000


@cache
def packed_tasks(tasks: int) -> bytes:
    return packed_sample("pai2020", tasks, 2020).encode()


def pack_tasks(folder: Path, tasks: int) -> None:
    """Replace the embedded sample of 20,000 tasks in a copy of the checkout by a smaller one."""
    content = packed_tasks(tasks)
    (folder / "workflow/samples/pai2020.json").write_bytes(content)
    declaration = folder / "scripts/ttf/formats/pai2020/format.yaml"
    digest = f"  sha256: {hashlib.sha256(content).hexdigest()}"
    declaration.write_text(re.sub("^  sha256: .*", digest, declaration.read_text(), count=1, flags=re.MULTILINE))


PODS_HEADER = (
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time"
)


def pods(count: int = 200, phases=("Succeeded", "Failed", "Running")) -> list[str]:
    return [
        f"pod-{n},{4000 + 1000 * (n % 3)},{8192 * (1 + n % 4)},1,{[250, 500, 1000][n % 3]},V100,LS,"
        f"{phases[n % len(phases)]},{n},{n + 20 + 7 * (n % 50)},{n + 1}"
        for n in range(count)
    ]


def write_pods(study: Checkout, lines: list[str], trace: str = "mine", header: str = PODS_HEADER) -> dict:
    folder = study.folder / "raw" / trace
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "openb_pod_list_default.csv").write_text("\n".join([header, *lines]) + "\n")
    return {"study": [trace], "registry": {trace: {"format": "openb", "folder": f"raw/{trace}"}}}

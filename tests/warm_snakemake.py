"""Snakemake started from a process that has imported it already: a third less work than `python -m snakemake`.

Run as a script it waits for runs to start: a line of JSON each on standard input, answered by the exit code. Each run
is a process of its own, forked before anything of a checkout has been imported.
"""

import atexit
import importlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

# What every run imports, of what is not the checkout's.
PRELOADED = ("snakemake.cli", "snakemake.report.html_reporter", "smart_open")


class WarmSnakemake:
    """Starts runs, the first of which starts the process that they are forked from."""

    def __init__(self):
        self._server = None

    def run(self, arguments: list[str], cwd: Path, env: dict[str, str], one_process=False, plugins=False):
        """What subprocess.run gives of `snakemake ARGUMENTS`; `one_process`: the run does its jobs itself; `plugins`:
        it knows those of the checkout, as a run by `make` does.
        """
        if self._server is None:
            # Only a process without threads can be forked; NumPy would start some for its linear algebra.
            server_env = env | {"OPENBLAS_NUM_THREADS": "1"}
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
            self._server = subprocess.Popen([sys.executable, __file__], **pipes, text=True, env=server_env)
            atexit.register(self._server.communicate)
        with tempfile.TemporaryDirectory() as folder:
            out, err = (Path(folder) / name for name in ("out", "err"))
            request = {"arguments": arguments, "env": env, "one_process": one_process, "plugins": plugins}
            request |= {"cwd": str(cwd), "out": str(out), "err": str(err)}
            self._server.stdin.write(json.dumps(request) + "\n")
            self._server.stdin.flush()
            code = int(self._server.stdout.readline())
            return subprocess.CompletedProcess(arguments, code, out.read_text(), err.read_text())


def _serve() -> SimpleNamespace:
    """Fork for each request; returns in each fork, with its request. The server itself ends with its input."""
    for line in sys.stdin:
        child = os.fork()
        if not child:
            return SimpleNamespace(**json.loads(line))
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)
    sys.exit()


def _become(request: SimpleNamespace) -> None:
    """Make this process what `python -m snakemake` would be."""
    for stream, path in ((1, request.out), (2, request.err)):
        file = os.open(path, os.O_WRONLY | os.O_CREAT)
        os.dup2(file, stream)
        os.close(file)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.chdir(request.cwd)
    os.environ.clear()
    os.environ.update(request.env)
    sys.path[0] = request.cwd
    sys.argv[:] = ["snakemake", *request.arguments]


def _run_scripts_here() -> None:
    """Have Snakemake run scripts in this process, where Polars, SciPy and Altair are imported once for all jobs."""
    from snakemake.benchmark import benchmarked
    from snakemake.script import PythonScript

    def execute_script(script, file, edit=False):
        code, path = compile(Path(file).read_bytes(), file, "exec"), sys.path[:]
        # A request to stop is for the main thread, which is Snakemake's.
        importlib.import_module("ttf.engine.process.entry").end_job_on_request = lambda: None
        with benchmarked(benchmark_record=script.bench_record):
            try:
                exec(code, {"__name__": "__main__", "__file__": file})
            except SystemExit as end:
                if end.code:
                    raise subprocess.CalledProcessError(end.code, file) from None
            finally:
                sys.path[:] = path  # to which Snakemake has every script add what it holds already

    PythonScript.execute_script = execute_script


def _find_plugins(checkout: Path) -> None:
    """Snakemake has looked for plugins when it was imported: those of the checkout it is told of."""
    from snakemake_interface_executor_plugins.registry import ExecutorPluginRegistry
    from snakemake_interface_logger_plugins.registry import LoggerPluginRegistry

    sys.path[:0] = [str(checkout / part) for part in ("workflow", "workflow/plugins", "scripts")]
    for registry in (ExecutorPluginRegistry(), LoggerPluginRegistry()):
        for package in (checkout / "workflow" / "plugins").glob(f"{registry.module_prefix}*"):
            registry.register_plugin(package.name, importlib.import_module(package.name))


if __name__ == "__main__":
    for module in PRELOADED:
        __import__(module)
    asked = _serve()
    _become(asked)
    if asked.plugins:
        snakefile = dict(zip(asked.arguments, asked.arguments[1:], strict=False)).get("--snakefile", "Snakefile")
        _find_plugins(Path(snakefile).absolute().parent)
    if asked.one_process:
        _run_scripts_here()
    sys.modules["snakemake.cli"].main()

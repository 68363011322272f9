"""Fork Snakemake from a process that has already imported it: a third less work than `python -m snakemake`.

As a script it reads a line of JSON per run from standard input and answers with the exit code. Each run is a fork
made before anything of a checkout is imported.
"""

import atexit
import contextlib
import gc
import importlib
import json
import os
import runpy
import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

# Modules outside the checkout that runs import: Snakemake's, where installed, and those of the jobs.
PRELOADED = ("snakemake.cli", "snakemake.report.html_reporter", "smart_open", "pandas", "polars", "scipy.stats")
PRELOADED += ("statsmodels.api", "altair", "jinja2", "great_tables", "nbformat")


class WarmSnakemake:
    """Start runs; the first one starts the server process that forks them."""

    def __init__(self):
        self._server = None

    def run(self, arguments: list[str], cwd: Path, env: dict[str, str], one_process=False, plugins=False, is_ttf=False):
        """Run `snakemake ARGUMENTS`; return what subprocess.run would. `one_process`: the run executes its jobs itself;
        `plugins`: it loads the checkout's plugins, as `ttf` does; `is_ttf`: run `ttf ARGUMENTS` of `cwd` instead.
        """
        if self._server is None:
            # Only a process without threads can be forked safely; NumPy would start some for linear algebra.
            server_env = env | {"OPENBLAS_NUM_THREADS": "1"}
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
            self._server = subprocess.Popen([sys.executable, __file__], **pipes, text=True, env=server_env)
            atexit.register(self._server.communicate)
        with tempfile.TemporaryDirectory() as folder:
            stdout_file, stderr_file = (Path(folder) / name for name in ("out", "err"))
            request = {"arguments": arguments, "env": env, "one_process": one_process, "plugins": plugins}
            request |= {"is_ttf": is_ttf, "cwd": str(cwd), "out": str(stdout_file), "err": str(stderr_file)}
            self._server.stdin.write(json.dumps(request) + "\n")
            self._server.stdin.flush()
            code = int(self._server.stdout.readline())
            return subprocess.CompletedProcess(arguments, code, stdout_file.read_text(), stderr_file.read_text())


def _serve() -> SimpleNamespace:
    """Fork for each request and return it in the fork. The server exits at the end of its input."""
    for line in sys.stdin:
        child = os.fork()
        if not child:
            return SimpleNamespace(**json.loads(line))
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)
    sys.exit()


def _become(request: SimpleNamespace) -> None:
    """Set streams, folder, environment and arguments of this process as `python -m snakemake` would have them."""
    for stream, path in ((1, request.out), (2, request.err)):
        file = os.open(path, os.O_WRONLY | os.O_CREAT)
        os.dup2(file, stream)
        os.close(file)
    null_device = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null_device, 0)
    os.close(null_device)
    os.chdir(request.cwd)
    os.environ.clear()
    os.environ.update(request.env)
    sys.path[0] = str(Path(request.cwd, "scripts")) if request.is_ttf else request.cwd
    sys.argv[:] = ["ttf" if request.is_ttf else "snakemake", *request.arguments]


def _run_scripts_here() -> None:
    """Have Snakemake run scripts in this process, where Polars, SciPy and Altair are imported once for all jobs.

    Nothing is measured: benchmark files say NA.
    """
    from snakemake.script import PythonScript

    def execute_script(script, file, edit=False):
        code, path = compile(Path(file).read_bytes(), file, "exec"), sys.path[:]
        if script.bench_record is not None:
            script.bench_record.running_time, script.bench_record.process_gone = 0.0, True
        # Signals to stop belong to Snakemake, which runs in the main thread.
        importlib.import_module("ttf.engine.process.entry").end_job_on_request = lambda: None
        try:
            exec(code, {"__name__": "__main__", "__file__": file})
        except SystemExit as end:
            if end.code:
                raise subprocess.CalledProcessError(end.code, file) from None
        finally:
            sys.path[:] = path  # every script repeats Snakemake's entries in it

    PythonScript.execute_script = execute_script


def _find_plugins(checkout: Path) -> None:
    """Register the checkout's plugins: Snakemake looked for plugins before, when it was imported."""
    from snakemake_interface_executor_plugins.registry import ExecutorPluginRegistry
    from snakemake_interface_logger_plugins.registry import LoggerPluginRegistry

    sys.path[:0] = [str(checkout / part) for part in ("workflow/plugins", "scripts")]
    for registry in (ExecutorPluginRegistry(), LoggerPluginRegistry()):
        for package in (checkout / "workflow" / "plugins").glob(f"{registry.module_prefix}*"):
            registry.register_plugin(package.name, importlib.import_module(package.name))


if __name__ == "__main__":
    # The package of this checkout may be installed, but each request has a checkout of its own.
    sys.path[:] = [path for path in sys.path if not [*Path(path).glob("ttf"), *Path(path).glob("*_plugin_progress")]]
    for module in PRELOADED:
        with contextlib.suppress(ModuleNotFoundError):
            importlib.import_module(module)
    sys.modules["snakemake.cli"].get_argument_parser()  # looks for plugins, once for all forks
    # Keep the garbage collector of forks off what was imported: it would copy all of that memory.
    gc.freeze()
    request = _serve()
    _become(request)
    if request.plugins:
        snakefile = dict(zip(request.arguments, request.arguments[1:], strict=False)).get("--snakefile", "Snakefile")
        _find_plugins(Path(snakefile).absolute().parent)
    if request.is_ttf:
        runpy.run_module("ttf", run_name="__main__")
        sys.exit()
    if request.one_process:
        _run_scripts_here()
    sys.modules["snakemake.cli"].main()

# What the terminal shows of a run; included first, so that it starts with the first line.
import gc
import logging
import os
import sys
from pathlib import Path
from types import ModuleType

from snakemake.shell import shell

WORKFLOW = Path(str(workflow.current_basedir)).parent
sys.path[:0] = [str(WORKFLOW), str(WORKFLOW.parent / "scripts")]

from study.checksums import take_each_once
from study.forked import fork_scripts
from study.module import in_module
from study.progress import follow
from study.studies import remember
from ttf.page.model import read_brief
from ttf.stopping import PREFIX, leave_if_asked, no_more, stop_on_request

# A graph is some hundred objects a file, all of them kept: looking through them for garbage is a tenth of building it.
gc.set_threshold(100_000)
# A line that finds no room in the log of Snakemake's own is not worth a traceback.
logging.raiseExceptions = False
# Where there is pandas, Snakemake imports it, a fifth of a start, to see whether a parameter is a frame of it. None is.
# A workflow that uses this one may need it.
if not in_module(workflow):
    sys.modules.setdefault("pandas", None)
    # It imports this for notebooks, of which there are none: a tenth of a second before the first job.
    sys.modules.setdefault("nbformat", ModuleType("nbformat"))
# This was kept from the start alone (scripts/run_study.py): analyses of a study's own may use it.
if sys.modules.get("numpy", "not there") is None:
    del sys.modules["numpy"]


def page_asked_for():
    """The report, if it is among what this run is for."""
    page = f"{OWN}/report/index.html"
    if all(page not in written(job.output) for job in workflow.dag.jobs):
        return None
    return f"{STORE if STORED else ''}{page}"


def briefs():
    """The brief of each trace of the study, of those that lie here."""
    files = {name: Path(f"results/{name}/brief.json") for name in STUDY.names}
    return {name: read_brief(file) for name, file in files.items() if file.is_file()}


if not in_module(workflow):
    shell.prefix(PREFIX.format(os.getpid()))
    if workflow.is_main_process:
        stop_on_request(temporary=workflow.snakemake_tmp_dir)

# The terminal of a workflow that uses this one is its own.
PROGRESS = (
    None
    if in_module(workflow)
    else follow(workflow, page_asked_for, lambda: remember(STUDY.name, workflow.config_settings), briefs)
)


onsuccess:
    if PROGRESS:
        PROGRESS.succeeded()
        no_more()


onerror:
    leave_if_asked()
    if PROGRESS:
        PROGRESS.stopped()
        no_more()

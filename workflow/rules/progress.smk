# What a run says at its end, and how it is stopped; included first, as it finds the packages of the workflow.
import gc
import logging
import sys
from pathlib import Path

from snakemake.logging import logger

WORKFLOW = Path(str(workflow.current_basedir)).parent
sys.path[:0] = [str(WORKFLOW), str(WORKFLOW.parent / "scripts")]

from study import progress
from study.module import in_module
from study.studies import remember
from ttf.display.brief_model import read_brief
from ttf.engine.process.stopping import ignore_requests, interrupts_are_errors

# A graph is some hundred objects a file, all of them kept: looking through them for garbage is a tenth of building it.
gc.set_threshold(100_000)
# A line that finds no room in the log of Snakemake's own is not worth a traceback.
logging.raiseExceptions = False


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


def at_rest():
    """Where nothing is to do: the report, if the run is for it; the study is the most recent one all the same."""
    remember(STUDY.name, workflow.config_settings)
    return page_asked_for()


progress.at_rest = at_rest


onsuccess:
    if not in_module(workflow):
        logger.info(progress.end_of_run(page_asked_for(), briefs), extra={"of_study": True})
        ignore_requests()


onerror:
    if not in_module(workflow):
        logger.info(progress.STOPPED, extra={"of_study": True})

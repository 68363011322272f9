# The message at the end of a run, and how a run is stopped. Included first: in a checkout, its package comes first.
import gc
import logging
import sys
from pathlib import Path

from snakemake.logging import logger

OWN_FOLDER = Path(str(workflow.current_basedir)).resolve().parents[1]
sys.path.insert(0, str(OWN_FOLDER / "scripts"))

from ttf.study.running import progress
from ttf.study.running.module import is_used_as_module
from ttf.study.studies import remember_study
from ttf.display.brief_model import read_brief
from ttf.engine.checkout import hand_to_jobs
from ttf.engine.process.stopping import ignore_requests, raise_on_interrupt

hand_to_jobs(OWN_FOLDER)

# A graph has some hundred permanent objects per file. Garbage collection among them takes a tenth of building it.
gc.set_threshold(100_000)
# No traceback if the disk has no room for a line of Snakemake's log.
logging.raiseExceptions = False


def find_requested_page():
    """Return the page of the report if this run makes it."""
    page = f"{STUDY_RESULTS}/report/index.html"
    if all(page not in get_plain_paths(job.output) for job in workflow.dag.jobs):
        return None
    return f"{STORE_PREFIX if IS_STORED else ''}{page}"


def read_briefs():
    files = {name: Path(f"results/{name}/brief.json") for name in STUDY.names}
    return {name: read_brief(file) for name, file in files.items() if file.is_file()}


def find_report_page():
    """Return the requested page when there is nothing to do; remember the study as the most recent one."""
    remember_study(STUDY.name, workflow.config_settings)
    return find_requested_page()


progress.find_report_page = find_report_page


onsuccess:
    if not is_used_as_module(workflow):
        logger.info(
            progress.format_end_of_run(find_requested_page(), read_briefs), extra={"is_study_message": True}
        )
        ignore_requests()


onerror:
    if not is_used_as_module(workflow):
        logger.info(progress.STOPPED, extra={"is_study_message": True})

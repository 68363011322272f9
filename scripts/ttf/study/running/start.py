"""The start of a run: load and check the study of a Snakemake workflow, or print one plain message."""

import sys
from pathlib import Path
from typing import Any

from ttf.study.configuration.config import read_layers
from ttf.study.configuration.messages import ConfigError
from ttf.study.running.disk import MachineError, check_free_space, check_writable
from ttf.study.running.module import refuse_prefix
from ttf.study.running.start_cache import use_cache_folder
from ttf.study.studies import check_shared, describe_replacement, read_studies
from ttf.study.study import Study


def load_study(workflow: Any, stored: bool) -> Study:
    """Return the study of the workflow; stored: whether its products lie in a store.

    The process of a single job skips the checks, as the run made them at its start. An error is printed and ends the
    process with exit code 1.
    """
    is_main = workflow.is_main_process
    is_run = is_main and not workflow.output_settings.dryrun
    try:
        if is_run:
            check_writable()
        if is_main:
            use_cache_folder(Path(".snakemake/ttf-memory"))
        refuse_prefix(workflow.modifier)
        study = Study(read_layers(workflow), stored)
        if is_main:
            other_studies = {} if stored else read_studies()
            study.check_headers()
            check_shared(study.config, other_studies)
            for note in filter(None, (describe_replacement(study.config, other_studies), *study.notes)):
                print(note, file=sys.stderr)
        if is_run and not stored:
            unread = [name for name in study.names if not Path("results", name, "raw").is_dir()]
            check_free_space({name: study.measure_raw_tables(name)[1] for name in unread}, study.measured_resources)
    except ConfigError as error:
        # A message instead of a traceback through the Snakefile.
        kind = "error" if isinstance(error, MachineError) else "error in the configuration"
        print(f"{kind}\n{error}", file=sys.stderr)
        sys.exit(1)
    return study

"""The start of a run: the study of a Snakemake workflow, read and checked, or one plain message."""

import sys
from pathlib import Path
from typing import Any

from study.config import layers_of
from study.disk import MachineError, check_room, check_writable
from study.messages import ConfigError
from study.module import refuse_prefix
from study.start_cache import remember_in
from study.studies import check_shared, made, replaced
from study.study import Study


def study_of(workflow: Any, root: Path, stored: bool) -> Study:
    """The study that this start is for, of the workflow in `root`; stored: its products lie in a store.

    A job, which is run by a process of its own, is of a study that was checked when the run started. What is wrong is
    printed, and ends the process with exit code 1.
    """
    started = workflow.is_main_process
    runs = started and not workflow.output_settings.dryrun
    try:
        if runs:
            check_writable()
        if started:
            remember_in(Path(".snakemake/ttf-memory"))
        refuse_prefix(workflow.modifier)
        study = Study(layers_of(workflow), root, stored)
        if started:
            others = {} if stored else made()
            study.check_headers()
            check_shared(study.config, others)
            for note in filter(None, (replaced(study.config, others), *study.notes)):
                print(note, file=sys.stderr)
        if runs and not stored:
            unread = [name for name in study.names if not Path("results", name, "raw").is_dir()]
            check_room({name: study.raw_of(name)[1] for name in unread}, study.measured)
    except ConfigError as error:
        # In place of a traceback through the Snakefile.
        kind = "error" if isinstance(error, MachineError) else "error in the configuration"
        print(f"{kind}\n{error}", file=sys.stderr)
        sys.exit(1)
    return study

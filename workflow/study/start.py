"""The start of a run: the study of a Snakemake workflow, read and checked, or one plain message."""

import sys
from pathlib import Path
from typing import Any

from study.config import layers_of
from study.documents import ConfigError
from study.lock import hold
from study.module import refuse_prefix
from study.studies import check_shared, made, old_layout, replaced
from study.study import Study


def study_of(workflow: Any, root: Path, stored: bool) -> Study:
    """The study that this start is for, of the workflow in `root`; stored: its products lie in a store.

    A run waits here until no other one is at work in the folder. A job, which is run by a process of its own, is of a
    study that was checked when the run started. What is wrong is printed, and ends the process with exit code 1.
    """
    started = workflow.is_main_process
    if started and not workflow.output_settings.dryrun:
        hold(Path(".snakemake"))
    try:
        refuse_prefix(workflow.modifier)
        study = Study(layers_of(workflow), root, stored)
        if started:
            others = {} if stored else made()
            study.check_headers()
            check_shared(study.config, others)
            for note in filter(None, (old_layout(), replaced(study.config, others), *study.left_out, *study.questions)):
                print(note, file=sys.stderr)
    except ConfigError as error:
        # In place of a traceback through the Snakefile.
        print(f"error in the configuration\n{error}", file=sys.stderr)
        sys.exit(1)
    return study

# Time to Failure: raw job records -> a rendered report. Read the rule files in the order of the includes: that is the
# way the data travel.
from snakemake.utils import min_version

min_version("9.27")


include: "rules/progress.smk"


configfile: workflow.source_path("../config/config.yaml")


if not in_module(workflow):

    report: "report/workflow.rst"


include: "rules/study.smk"
include: "rules/acquire.smk"
include: "rules/ingest.smk"
include: "rules/quality.smk"
include: "rules/derive.smk"
include: "rules/analyse.smk"
include: "rules/replicate.smk"
include: "rules/report.smk"
include: "rules/provenance.smk"
include: "rules/publish.smk"


rule all:
    """Everything the study gives, and the manifest of it."""
    input:
        lambda _: everything_asked(),
        # It hashes what lies on the disk.
        [] if STORED else rules.write_manifest.output,
    localrule: True


rule ingested:
    """Stop after the raw tables have been read and checked."""
    input:
        of_every_trace(written(rules.ingest.output)),
    localrule: True


rule analysed:
    """Stop before the report: all tables and charts."""
    input:
        lambda _: asked_of(jobs_of_traces(), STORED),
    localrule: True


onstart:
    if not in_module(workflow):
        remember(STUDY.name, workflow.config_settings)
        interrupts_are_errors()

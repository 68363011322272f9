# Time to Failure: raw job records -> a rendered report. The order of the includes is the order in which data flow.
from snakemake.utils import min_version

min_version("9.27")


include: "rules/progress.smk"


configfile: workflow.source_path("../config/config.yaml")


if not is_used_as_module(workflow):

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
    """Make all products of the study and their manifest."""
    input:
        lambda _: select_all_targets(),
        # The manifest hashes files on the disk.
        [] if IS_STORED else rules.write_manifest.output,
    localrule: True


rule ingested:
    """Read and check the raw tables; stop before the analyses."""
    input:
        expand_traces(get_plain_paths(rules.ingest.output)),
    localrule: True


rule analysed:
    """Make all tables and charts; stop before the report."""
    input:
        lambda _: select_targets(list_trace_jobs(), IS_STORED),
    localrule: True


onstart:
    if not is_used_as_module(workflow):
        remember_study(STUDY.name, workflow.config_settings)
        raise_on_interrupt()

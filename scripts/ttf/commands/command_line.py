"""What can be typed: commands, arguments and options, with their help."""

import json
import sys
from collections.abc import Callable
from typing import Any

import click

from ttf.engine.checkout import CHECKOUT

# Options that several commands share.
_STUDY = click.option("--study", default="", metavar="NAME", help="An existing study; default: the most recent here.")
_JSON = click.option("--json", "is_json", is_flag=True, help="Print JSON for programs.")
_TRACE = click.option("--trace", default="", metavar="NAME", help="A trace of the study; default: its only one.")
_CHOICE = (
    click.option("--config", default="", metavar="FILE", help="A configuration; with DATA, the mapping of a table."),
    click.option("--trace", default="", metavar="NAMES", help="Traces, a comma between two; all: the three samples."),
    _STUDY,
)
_RUNNING = (
    click.option("--profile", default="", metavar="NAME", help="slurm, kubernetes, or a folder: jobs on a cluster."),
    click.option("--cores", default="", metavar="N", help="How many cores to use; default: all."),
    click.option("--dry-run", "is_dry", is_flag=True, help="List the jobs and why they would run; make nothing."),
    click.option("--snakemake", default="", metavar="ARGUMENTS", help="Further arguments of Snakemake, in quotes."),
)
_PRODUCTS = {
    "pdf": (("pdf", "all"), "Print the report as report.pdf, next to the page."),
    "figures": (("export_figures",), "Write figures/: each chart for papers, as SVG and as PDF with embedded fonts."),
    "publish": (("publish_site",), "Write site/, for any host of static files, with pseudonyms of users and nodes."),
    "archive": (("archive_results",), "Write archive/: one file with RO-Crate metadata for a repository of data."),
}


def _add_options(*options: Callable) -> Callable:
    def decorate(command: Callable) -> Callable:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="time-to-failure")
def ttf() -> None:
    """Study how jobs on a GPU cluster fail: job records in, one page out.

    Everything is made in this folder: results/, logs/, benchmarks/ and .snakemake/.
    """


@ttf.command()
@_add_options(*_RUNNING)
def demo(**options: Any) -> None:
    """Make the report of the synthetic Slurm sample.

    Example: ttf demo
    """
    from ttf.commands.run import DEMO, run

    run(trace=DEMO, **options)


@ttf.command()
@click.argument("data", default="")
@_add_options(*_CHOICE, *_RUNNING)
def report(**options: Any) -> None:
    """Make the report of DATA: a folder of job records, or a table with a row per job.

    Out comes results/studies/NAME/report/index.html, one file. Without DATA, --config and --trace the study is an
    existing one, and in a new folder the synthetic sample. A report is made again only where its raw data changed.

    Example: ttf report my_slurm/
    """
    from ttf.commands.run import run

    run(**options)


def _make_product_command(name: str, targets: tuple[str, ...], text: str) -> None:
    @ttf.command(name, help=f"{text}\n\nIt lies in results/studies/NAME/. Example: ttf {name}")
    @click.argument("data", default="")
    @_add_options(*_CHOICE, *_RUNNING)
    def command(**options: Any) -> None:
        from ttf.commands.run import run

        run(targets, extra="pdf", **options)


for _name, (_targets, _text) in _PRODUCTS.items():
    _make_product_command(_name, _targets, _text)


@ttf.command()
@click.argument("folder", default="")
@_STUDY
@_JSON
def verify(folder: str, study: str, is_json: bool) -> None:
    """Compare the results with their manifest, or FOLDER (a site, an unpacked archive) with the list in it.

    A line for each file that was edited, added, is missing or out of date; then the exit status is 1.

    Example: ttf verify
    """
    from ttf.commands.verify import verify as verify_results

    sys.exit(verify_results(study, folder, is_json))


@ttf.command()
@click.argument("file", default="")
@click.option("--key", default="", metavar="KEY", help="A number by its key in a metrics.json, such as mttf.mttf_s.")
@click.option("--verbose", "is_verbose", is_flag=True, help="Every job behind a number, down to the raw files.")
@_STUDY
def explain(**options: Any) -> None:
    """Trace FILE, a product below results/, or a number, back to the raw files.

    Example: ttf explain results/sample/tables/mttf.csv
    """
    from ttf.commands.explain import print_explanation

    sys.exit(print_explanation(**options))


@ttf.command()
@click.option("--rules", default="", metavar="FILE", help="Thresholds, such as config/thresholds.yaml.")
@click.option("--against", default="", metavar="FOLDER", help="Earlier results: which numbers changed since, and why.")
@_STUDY
@_JSON
def check(**options: Any) -> None:
    """Compare the numbers of the study with thresholds, or with earlier results; for cron or CI.

    Exit status 1: at least one rule is crossed; 2: rules or results cannot be used.

    Example: ttf check --rules thresholds.yaml
    """
    from ttf.commands.check import check as check_numbers

    sys.exit(check_numbers(**options))


@ttf.command()
@click.option("--rules", default="", metavar="FILE", help="Thresholds that become alerts; default: the shipped ones.")
@click.option("--out", default="", metavar="FILE", help="A further file for the metrics, which ends in .prom.")
@_STUDY
def metrics(**options: Any) -> None:
    """Write monitoring/: the main numbers for Prometheus, and thresholds as alerts.

    Example: ttf metrics --out /var/lib/node_exporter/ttf.prom
    """
    from ttf.commands.metrics import write_metrics

    sys.exit(write_metrics(**options))


@ttf.command()
@click.argument("file", default="")
@click.option("--part", default="", metavar="NAME", help="Score a part of the trace instead of FILE.")
@click.option("--model", default="", metavar="WINDOW", help="The window whose model scores; default: the current one.")
@click.option("--out", default="", metavar="FILE", help="The file for the scores, which ends in .csv.")
@_TRACE
@_STUDY
def score(trace: str, **options: Any) -> None:
    """Predict the risk of failure of the new jobs in FILE, a CSV.

    Example: ttf score new_jobs.csv
    """
    from ttf.commands.score import print_scores

    sys.exit(print_scores(trace_name=trace, **options))


@ttf.command()
@click.option("--study", required=True, metavar="NAME", help="The study to remove.")
@click.option("--yes", "is_sure", is_flag=True, help="Remove the listed folders.")
def remove(**options: Any) -> None:
    """List the folders that only a study has; with --yes remove them. Raw tables stay.

    Example: ttf remove --study my_slurm
    """
    from ttf.commands.remove import remove as remove_files

    sys.exit(remove_files(**options))


@ttf.command()
@click.argument("name")
@click.option("--columns", default="", metavar="NAMES", help="Columns, a comma between two; default: all with a value.")
@click.option("--latex", "is_latex", is_flag=True, help="LaTeX; default: Markdown.")
@_TRACE
@_STUDY
def table(**options: Any) -> None:
    """Print the table NAME for a paper, with a caption and a note of what n and the intervals are.

    Example: ttf table mttf --columns stratum,n,events,mttf_s --latex
    """
    from ttf.commands.table import print_table

    sys.exit(print_table(**options))


@ttf.command()
@_JSON
def studies(is_json: bool) -> None:
    """List the studies of this folder, the most recent one first.

    Example: ttf studies
    """
    from ttf.study.studies import find_last_study, list_studies

    last = find_last_study()
    names = sorted(list_studies(), key=lambda name: (name != last, name))
    click.echo(json.dumps(names) if is_json else "\n".join(names), nl=bool(names) or is_json)


@ttf.command()
def snakefile() -> None:
    """Print the path of the Snakefile, for a workflow that uses this one as a module.

    Example: module ttf: snakefile: "(what this prints)"
    """
    click.echo(CHECKOUT / "workflow" / "Snakefile")

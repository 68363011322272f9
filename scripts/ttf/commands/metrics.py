"""`ttf metrics`: write the main numbers of a finished study for Prometheus, and thresholds as its alert rules.

OUT is a further file for the metrics. Exit code 2: rules, results or OUT cannot be used.
"""

from pathlib import Path

from ttf.commands.error_ending import with_error_ending
from ttf.engine.checkout import CHECKOUT
from ttf.engine.errors import StudyError
from ttf.engine.provenance.digests import remember_files
from ttf.engine.storage.plain_files import replace_file
from ttf.engine.words import plural
from ttf.page.checks.thresholds import to_single_line
from ttf.page.monitoring import alert_rules, open_metrics
from ttf.study.configuration.threshold_file import load_rules
from ttf.study.finished import read_results, read_subject
from ttf.study.studies import STUDIES, choose_study


@with_error_ending(2)
def write_metrics(study: str, rules: str, out: str) -> int:
    """Write the metrics and the alert rules, and print where they are; return the exit status."""
    name = choose_study(study)
    if out and Path(out).suffix != ".prom":
        raise StudyError(f"--out {out}: name a file that ends in .prom; the node exporter reads no other.")
    metrics, alerts, skipped = render_files(name, rules or str(CHECKOUT / "config" / "thresholds.yaml"))
    files = {STUDIES / name / open_metrics.FILE: metrics, STUDIES / name / alert_rules.FILE: alerts}
    files |= {Path(out): metrics} if out else {}
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, text)
        remember_files([path])
    for number in skipped:
        print(f"no alert on {to_single_line(number)}: the traces of this study lack that number.")
    print(f"{plural(metrics.count('# TYPE '), 'metric')}: {', '.join(map(str, files))}")
    return 0


def render_files(name: str, rules_file: str) -> tuple[str, str, list[str]]:
    """Return the texts of metrics and alert rules, and the keys of the numbers whose rules gave no alert."""
    results = read_results(Path("results"), name, is_verified=True)
    subjects = {subject: read_subject(subject, results) for subject in results.metrics}
    rules = load_rules(rules_file, [*subjects.values()])
    # The metrics include the numbers of all rules.
    keys = {subject: [rule.number for rule in rules if rule.trace in (None, subject)] for subject in subjects}
    folders = {subject: Path(results.paths[subject]).parent for subject in subjects}
    alerts, skipped = alert_rules.render_alert_rules(name, rules, [*subjects.values()])
    return open_metrics.render_metrics(name, folders, keys), alerts, skipped

"""`make check`: name the numbers of a finished study that cross thresholds or changed since earlier results.

Exit code 0: no rule is crossed; 1: at least one is; 2: the rules or the results cannot be used.
"""

from ttf.engine.process.stopping import run_in_child

if __name__ == "__main__":
    run_in_child()

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "workflow"))

from study.finished import find_results_folder, find_section, read_results, read_subject
from study.messages import ConfigError
from study.studies import choose_study
from study.threshold_file import load_rules
from ttf.engine.errors import StudyError
from ttf.engine.provenance import seal
from ttf.engine.words import plural
from ttf.page.checks.changed_numbers import Results, describe_causes, describe_earlier_value, find_moves, report_moves
from ttf.page.checks.thresholds import CROSSED, UNTOLD, evaluate


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--study", default="", help="default: the most recent study")
    parser.add_argument("--rules", default="", help="a file of rules, such as config/thresholds.yaml")
    parser.add_argument("--against", default="", help="a folder with earlier results: an unpacked archive, or a copy")
    options = parser.parse_args(arguments)
    try:
        if not (options.rules or options.against):
            raise ConfigError("what? make check RULES=config/thresholds.yaml, or make check AGAINST=folder")
        name = choose_study(options.study)
        current = read_results(Path("results"), name, is_verified=True)
        previous = read_results(find_results_folder(Path(options.against)), name) if options.against else None
        if not options.rules:
            print("\n".join(report_moves(previous, current)))
            return 0
        lines, code = check_rules(Path(options.rules), current, previous)
    except StudyError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"error: {seal.show_path(str(error.filename))}: cannot be read: {error.strerror}", file=sys.stderr)
        return 2
    print("\n".join(lines))
    return code


def check_rules(file: Path, current: Results, previous: Results | None) -> tuple[list[str], int]:
    """Return a line for each rule that is crossed or undecided and for each other changed number; and the exit code."""
    subjects = [read_subject(name, current) for name in current.metrics]
    rules = load_rules(file, subjects)
    changes = {(move.subject, move.key): move for move in find_moves(previous, current)} if previous else {}
    lines, crossed = [], 0
    for rule in rules:
        checked = [subject for subject in subjects if rule.trace in (None, subject.name)]
        answers = {subject.name: evaluate(rule, subject) for subject in checked}
        crossed += any(verdict.state == CROSSED for verdict in answers.values())
        for name, verdict in answers.items():
            if verdict.state == CROSSED or (verdict.state == UNTOLD and rule.if_missing == "tell"):
                change = changes.pop((name, rule.number), None)
                cause = describe_causes(change.causes, previous, current) if change else ""
                reason = f" It {describe_earlier_value(change, previous)}, and moved {cause}." if change else ""
                section = find_section(rule.number, name, current) if verdict.state == CROSSED else ""
                lines.append(f"{verdict.sentence}{reason}{f' See {section}' * bool(section)}")
    lines.append(
        f"{plural(len(rules), 'rule')} compared with the study: {f'{crossed:,}' if crossed else 'none'} crossed."
    )
    lines += [
        f"{plural(count, 'other number')} moved {describe_causes(causes, previous, current)}."
        for causes, count in Counter(change.causes for change in changes.values()).items()
    ]
    return lines, int(crossed > 0)


if __name__ == "__main__":
    # A trace's name may have letters that the terminal lacks.
    sys.stdout.reconfigure(errors="backslashreplace")
    sys.stderr.reconfigure(errors="backslashreplace")
    sys.exit(main())

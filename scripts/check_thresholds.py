"""`make check`: which numbers of a finished study cross a person's thresholds, and which moved since earlier results.

Exit code 0: no rule is crossed; 1: at least one is; 2: it cannot be told, as the rules or the results cannot be used.
"""

from ttf.engine.process.stopping import run_apart

if __name__ == "__main__":
    run_apart()

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "workflow"))

from study.finished import find_results_folder, read_results, read_subject
from study.messages import ConfigError
from study.studies import choose_study
from study.study_analysis import COMPARISON
from study.threshold_file import load_rules
from ttf.engine.errors import StudyError
from ttf.engine.provenance import seal
from ttf.engine.words import plural
from ttf.page.checks.changed_numbers import Results, because, moves, told_of_moves, was
from ttf.page.checks.thresholds import CROSSED, UNTOLD, answer


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--study", default="", help="by default the study made last")
    parser.add_argument("--rules", default="", help="a file of rules, such as config/thresholds.yaml")
    parser.add_argument("--against", default="", help="a folder with earlier results: an unpacked archive, or a copy")
    given = parser.parse_args(arguments)
    try:
        if not (given.rules or given.against):
            raise ConfigError("what? make check RULES=config/thresholds.yaml, or make check AGAINST=folder")
        name = choose_study(given.study)
        now = read_results(Path("results"), name, is_verified=True)
        then = read_results(find_results_folder(Path(given.against)), name) if given.against else None
        if not given.rules:
            print("\n".join(told_of_moves(then, now)))
            return 0
        lines, code = held_against(Path(given.rules), now, then)
    except StudyError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"error: {seal.printable(str(error.filename))}: cannot be read: {error.strerror}", file=sys.stderr)
        return 2
    print("\n".join(lines))
    return code


def held_against(file: Path, now: Results, then: Results | None) -> tuple[list[str], int]:
    """A line for each rule that is crossed or cannot be told, and for what else moved; and the exit code."""
    subjects = [read_subject(name, now) for name in now.metrics if name != COMPARISON]
    of_all = [read_subject(name, now) for name in now.metrics if name == COMPARISON]
    rules = load_rules(file, subjects, of_all)
    moved = {(move.subject, move.key): move for move in moves(then, now)} if then else {}
    lines, crossed = [], 0
    for rule in rules:
        of_rule = [of for of in (*subjects, *of_all) if of.name == rule.trace] if rule.trace else subjects
        answers = {of.name: answer(rule, of) for of in of_rule}
        crossed += any(told.state == CROSSED for told in answers.values())
        for name, told in answers.items():
            if told.state == CROSSED or (told.state == UNTOLD and rule.if_missing == "tell"):
                move = moved.pop((name, rule.number), None)
                why = f" It {was(move, then)}, and moved {because(move.causes, then, now)}." if move else ""
                lines.append(f"{told.sentence}{why}")
    lines.append(
        f"{plural(len(rules), 'rule')} held against the study: {f'{crossed:,}' if crossed else 'none'} crossed."
    )
    others = Counter(move.causes for move in moved.values())
    lines += [
        f"{plural(count, 'other number')} moved {because(causes, then, now)}." for causes, count in others.items()
    ]
    return lines, int(crossed > 0)


if __name__ == "__main__":
    # A trace may have letters that the terminal lacks.
    sys.stdout.reconfigure(errors="backslashreplace")
    sys.stderr.reconfigure(errors="backslashreplace")
    sys.exit(main())

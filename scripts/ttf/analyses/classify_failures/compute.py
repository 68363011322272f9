from ttf.inputs import Inputs
from ttf.log_tails import read_tails
from ttf.taxonomy import (
    REASON_COLUMNS,
    classify,
    every_attempt,
    in_tails,
    most_characters,
    taxonomy_table,
    unmatched_table,
)


def compute(given: Inputs) -> dict:
    taxonomy = given.settings.taxonomy
    every = every_attempt(given.read("jobs"), given.read("attempts") if "attempts" in given else None)
    tails = read_tails(given.path("tails"), most_characters(taxonomy)) if "tails" in given else []
    of_logs, lines = in_tails(tails, every, taxonomy)
    classified = classify(every.filter("failed"), taxonomy, of_logs)
    return {
        "reasons": classified.select(REASON_COLUMNS),
        "taxonomy": taxonomy_table(classified),
        "unmatched": unmatched_table(classified, of_logs),
        "log_tails": lines,
    }

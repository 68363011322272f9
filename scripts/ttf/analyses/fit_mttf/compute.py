from collections.abc import Iterator

import polars as pl

from ttf.inputs import Inputs
from ttf.lives import by_cause, strata_in
from ttf.stats.lifetimes import lifetime_models
from ttf.stats.mttf import failures_without_end, mean_time_to_failure
from ttf.stats.strata import CountedLives
from ttf.stats.survival import survival_blocks, thin

LIVES = ("duration_s", "duration_max_s", "event", "gpu_milli", "nodes")


def compute(given: Inputs) -> Iterator[tuple]:
    settings = given.settings
    lives = given.scan("lives", [*LIVES, *settings.strata, *settings.causes])
    strata = strata_in(lives, settings.strata)
    # Failure of any kind first, then each cause that the trace distinguishes.
    events = {"failure": lives} | {cause: by_cause(lives, cause) for cause in settings.causes}
    counted = {event: CountedLives(of, [event]) for event, of in events.items()}
    thinned, summaries = [], []

    def whole_curves() -> Iterator[pl.DataFrame]:
        for event, of in counted.items():
            for curves, summary in survival_blocks(of, event, strata):
                thinned.append(thin(curves, settings.max_steps))
                summaries.append(summary)
                yield curves

    # Written as they come: all of them would not fit memory with ten million lives.
    yield "survival_curves", whole_curves()
    yield "survival", pl.concat(thinned)
    yield "survival_summary", pl.concat(summaries)
    yield "mttf", pl.concat([mean_time_to_failure(of, event, strata) for event, of in events.items()])
    yield "failures_without_end", failures_without_end(lives, "failure", strata)
    yield "lifetime_models", pl.concat([lifetime_models(of, event, strata) for event, of in counted.items()])

"""Rule fit_mttf: survival curves, mean time to failure and lifetime models, from lives alone."""

from ttf.entry import run_rule


def main(snakemake):
    import polars as pl
    from ttf.lives import by_cause, strata_in
    from ttf.stats.lifetimes import lifetime_models
    from ttf.stats.mttf import failures_without_end, mean_time_to_failure
    from ttf.stats.strata import CountedLives
    from ttf.stats.survival import CURVES_SCHEMA, survival_blocks, thin
    from ttf.tables import scan_columns, write_blocks, write_csv

    told_apart = [*snakemake.params.strata, *snakemake.params.causes]
    read = ("duration_s", "duration_max_s", "event", "gpu_milli", "nodes", *told_apart)
    lives = scan_columns(snakemake.input.lives, read)
    strata = strata_in(lives, snakemake.params.strata)
    # Failure of any kind first, then each cause a trace tells apart.
    events = {"failure": lives} | {cause: by_cause(lives, cause) for cause in snakemake.params.causes}
    counted = {event: CountedLives(of, [event]) for event, of in events.items()}
    thinned, summaries = [], []

    def whole_curves():
        for event, of in counted.items():
            for curves, summary in survival_blocks(of, event, strata):
                thinned.append(thin(curves, snakemake.params.max_steps))
                summaries.append(summary)
                yield curves

    write_blocks(whole_curves(), CURVES_SCHEMA, snakemake.output.curves)
    summary = pl.concat(summaries)
    write_csv(pl.concat(thinned), snakemake.output.survival)
    write_csv(summary, snakemake.output.summary)
    mttf = pl.concat([mean_time_to_failure(of, event, strata) for event, of in events.items()])
    write_csv(mttf, snakemake.output.mttf)
    write_csv(failures_without_end(lives, "failure", strata), snakemake.output.without_end)
    models = pl.concat([lifetime_models(of, event, strata) for event, of in counted.items()])
    write_csv(models, snakemake.output.models)
    return f"{summary.height:,} strata, {summary['events'].first() or 0:,} failures at a known time"


run_rule(main, snakemake)

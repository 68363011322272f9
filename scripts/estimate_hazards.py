"""Rule estimate_hazards: which end comes when, whether strata fail alike, hazard ratios, delayed entry; from lives."""

from ttf.entry import run_rule


def main(snakemake):
    import polars as pl
    from ttf.charts.figure import Study
    from ttf.charts.hazards import hazard_ratio_chart, incidence_chart
    from ttf.charts.saving import save_charts
    from ttf.lives import by_cause, ends_in, strata_in
    from ttf.stats.hazard import cumulative_hazard
    from ttf.stats.hazard_ratios import hazard_ratios
    from ttf.stats.incidence import cumulative_incidence, exclusive_causes
    from ttf.stats.incidence_at import incidence_at
    from ttf.stats.logrank import logrank
    from ttf.stats.mttf import mean_time_to_failure
    from ttf.stats.strata import CountedLives, since_watched
    from ttf.stats.survival import survival_summary
    from ttf.tables import scan_columns, write_csv

    params, output = snakemake.params, snakemake.output
    told_apart = (*params.strata, *params.causes, *params.covariates)
    read = ("entry_s", "duration_s", "duration_max_s", "event", "gpu_milli", "nodes", *told_apart)
    lives = scan_columns(snakemake.input.lives, read)
    strata = strata_in(lives, params.strata)
    # Failure of any kind first, then each cause a trace tells apart.
    events = {"failure": lives} | {cause: by_cause(lives, cause) for cause in params.causes}
    covariates = [name for name in params.covariates if name in lives.collect_schema()]
    cox = pl.concat([hazard_ratios(of, event, covariates) for event, of in events.items()])
    write_csv(cox, output.cox)

    ends = ends_in(lives)
    counted = {event: CountedLives(of, ends if event == "failure" else [event]) for event, of in events.items()}
    # Cut one curve at a time: all of them whole would not fit memory with ten million lives.
    hazard = [cumulative_hazard(of, event, strata, params.max_steps) for event, of in counted.items()]
    write_csv(pl.concat(hazard), output.cumulative_hazard)
    competing = counted["failure"]
    if params.causes:
        exclusive, ends = exclusive_causes(lives, params.causes)
        competing = CountedLives(exclusive, ends)
    incidence = cumulative_incidence(competing, ends, strata, params.max_steps)
    write_csv(incidence, output.cumulative_incidence)
    at = incidence_at(competing, ends)
    write_csv(at, output.incidence_at)
    write_csv(pl.concat([logrank(of, event, strata) for event, of in counted.items()]), output.logrank)
    summaries = [survival_summary(of, event, strata, delayed_entry=True) for event, of in counted.items()]
    write_csv(pl.concat(summaries), output.survival_summary_delayed_entry)
    mttf = [mean_time_to_failure(since_watched(of), event, strata) for event, of in events.items()]
    write_csv(pl.concat(mttf), output.mttf_delayed_entry)

    study = Study(params.unit, params.synthetic)
    drawn = {
        "cumulative_incidence": incidence_chart(incidence, at, study),
        "hazard_ratios": hazard_ratio_chart(cox, study),
    }
    save_charts(drawn, output.specs, output.index)
    late = lives.select((pl.col("entry_s") > 0).sum()).collect(engine="streaming").item()
    return f"{cox['hazard_ratio'].count():,} hazard ratios, {late:,} lives entered late"


run_rule(main, snakemake)

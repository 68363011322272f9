from ttf.charts.outcomes import outcome_shares, runtime_distribution

CHARTS = {
    "outcome_shares": lambda given, study: outcome_shares(given["outcomes"], study),
    "runtime_distribution": lambda given, study: runtime_distribution(
        given["runtime_quantiles"], given["outcomes"], study
    ),
}

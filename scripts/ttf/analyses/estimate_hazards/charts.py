from ttf.charts.hazards import hazard_ratio_chart, incidence_chart

CHARTS = {
    "cumulative_incidence": lambda given, study: incidence_chart(
        given["cumulative_incidence"], given["incidence_at"], study
    ),
    "hazard_ratios": lambda given, study: hazard_ratio_chart(given["cox"], study),
}

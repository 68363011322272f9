"""Which tables the numbers of a chart stand in: the files that the page names under it."""

from collections.abc import Sequence

# A chart that is not here has a table of its own name.
_TABLES: dict[str, Sequence[str]] = {
    "outcome_shares": ["outcomes"],
    "runtime_distribution": ["runtime_quantiles"],
    "failure_share": ["failure_share"],
    "runtime_by_gpu_type": ["runtime_by_group"],
    "runtime_by_gpus": ["percentiles"],
    "runtime_by_measured_use": ["runtime_by_group", "correlations"],
    "runtime_to_failure": ["runtime_to_failure"],
    "queue_by_gpus": ["percentiles"],
    "queue_by_gpu_type": ["percentiles"],
    "queue_by_gpu_request": ["percentiles"],
    "queue_by_account": ["percentiles"],
    "mttf_by_gpus": ["mttf_by_gpus", "node_failure_rate"],
    "probability_plots": ["lifetime_models", "survival"],
    "probability_plots_by_stratum": ["lifetime_models", "survival"],
    "hazard_ratios": ["cox"],
    "study1_asked_twice": ["study1"],
    "delay_first_later": ["delays"],
    "long_delays_by_account": ["delays"],
    "retries_by_gpus": ["retries"],
    "unsuccessful_by_gpus": ["retries"],
    "gpu_use_by_servers": ["gpu_use"],
    "servers_by_load": ["occupancy"],
    "epochs": ["epochs", "epochs_summary"],
    "lemons": ["lemon_nodes"],
    "lemon_signals": ["lemon_nodes"],
    "ettr_by_gpus": ["ettr", "node_failure_rate"],
    "ettr_contour": ["ettr_contour", "node_failure_rate"],
    "ettr_planner": ["node_failure_rate"],
}
# Of charts whose names begin so and are not above: by requests, and by strata that a format has of its own.
_FAMILIES: dict[str, Sequence[str]] = {
    "runtime_by_": ["runtime_by_group", "correlations"],
    "survival": ["survival", "survival_summary"],
    "mttf_by_": ["mttf"],
}


def tables_of(chart: str) -> Sequence[str]:
    """The tables of a chart without the ending .csv."""
    name = chart.removesuffix("_log")
    if name in _TABLES:
        return _TABLES[name]
    return next((tables for start, tables in _FAMILIES.items() if name.startswith(start)), [name])

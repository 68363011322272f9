from ttf.numbers import jobs as of


def numbers(metrics, given):
    of.of_failure_share(metrics, given["failure_share"])
    of.of_run_times(metrics, given["runtime_by_group"])
    of.of_correlations(metrics, given["correlations"])

from ttf.numbers import jobs as of


def numbers(metrics, given):
    of.of_outcomes(metrics, given["outcomes"])
    of.of_median_run_times(metrics, given.scan("jobs"))

from ttf.numbers.sizes import of_over_time, of_sizes


def numbers(metrics, given):
    of_sizes(metrics, given["mttf_by_gpus"], given["node_failure_rate"], given["size_law"])
    of_over_time(metrics, given["failure_rate_over_time"])

from ttf import compare


def numbers(metrics, given):
    tables = {name: given[f"compared_{name}"] for name in compare.SCHEMAS}
    compare.metrics_of(metrics, given["compared_traces"], tables)

from ttf.numbers.quality import of_drift


def numbers(metrics, given):
    of_drift(metrics, given["drift"])

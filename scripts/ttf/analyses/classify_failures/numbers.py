from ttf.numbers.taxonomy import of_taxonomy


def numbers(metrics, given):
    of_taxonomy(metrics, given["taxonomy"], given["unmatched"], given["log_tails"])

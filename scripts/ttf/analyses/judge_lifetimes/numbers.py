from ttf.numbers.lifetimes import of_verdict


def numbers(metrics, given):
    of_verdict(metrics, given["lifetime_verdict"])

from ttf.numbers.lemons import of_lemons


def numbers(metrics, given):
    of_lemons(metrics, given["lemon_nodes"], given["lemon_effect"])

from ttf.numbers import lives as of


def numbers(metrics, given):
    curve = of.curve_of_all(given.scan("survival_curves"))
    if "jobs" in given:
        of.of_steps(metrics, curve, given.scan("jobs"))
    else:
        of.of_lives(metrics, given.read("lives"))
    of.of_survival(metrics, given["survival_summary"], curve)
    of.of_mttf(metrics, given["mttf"], given["failures_without_end"])
    of.of_models(metrics, given["lifetime_models"])

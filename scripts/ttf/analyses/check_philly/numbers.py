from ttf.traces.philly_checks import of_philly_checks


def numbers(metrics, given):
    of_philly_checks(metrics, given["zone_evidence"], given["listed_machines"])

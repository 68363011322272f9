from ttf.numbers.ettr import of_ettr_measured


def numbers(metrics, given):
    of_ettr_measured(metrics, given["ettr_measured"])

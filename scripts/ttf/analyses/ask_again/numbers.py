from ttf.numbers.study1 import of_study1


def numbers(metrics, given):
    of_study1(metrics, given["study1"])

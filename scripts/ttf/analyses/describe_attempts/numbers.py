from ttf.numbers.queueing import of_queueing

numbers = of_queueing

from ttf.numbers.lost_work import of_lost_work

numbers = of_lost_work

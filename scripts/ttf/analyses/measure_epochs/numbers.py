from ttf.numbers.use import of_epochs

numbers = of_epochs

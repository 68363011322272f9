from ttf.numbers.use import of_utilisation

numbers = of_utilisation

from ttf.numbers.occupancy import of_occupancy

numbers = of_occupancy

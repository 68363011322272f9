from ttf.numbers.hazards import of_hazards

numbers = of_hazards

from ttf.numbers.ettr import of_ettr

numbers = of_ettr

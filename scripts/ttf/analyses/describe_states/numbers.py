from ttf.numbers.states import of_states

numbers = of_states

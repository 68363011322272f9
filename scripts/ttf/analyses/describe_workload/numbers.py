from ttf.numbers.workload import of_workload

numbers = of_workload

from ttf.inputs import Inputs
from ttf.stats.reconstruction import occupancy_tables


def compute(given: Inputs) -> dict:
    attempts = given.scan("attempts") if "attempts" in given else None
    with given.scratch() as folder:
        return occupancy_tables(given.scan("placements"), given.scan("jobs"), given.read("nodes"), attempts, folder)

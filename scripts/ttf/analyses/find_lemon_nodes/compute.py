from ttf.inputs import Inputs
from ttf.partitions import partitions_of
from ttf.stats import lemons
from ttf.stats.node_runs import LIVES_READ, basis_of, halves_of, last_window

# Placements looked at together; of these the ones within the window are held.
PARTITION_ROWS = 1 << 23


def compute(given: Inputs) -> dict:
    settings = given.settings
    rate = settings.false_discovery
    if "placements" in given:
        lives, placements = given.scan("lives_infra", LIVES_READ), given.scan("placements")
        days = settings.window_days if basis_of(lives) == "proxy" else settings.infra_window_days
        window = last_window(placements, days)
        with given.scratch() as spilled:
            partitions = partitions_of([placements], PARTITION_ROWS, spilled)
            found = lemons.lemon_nodes(placements, lives, [window, *halves_of(window)], rate, partitions)
    else:
        lives = given.read("lives_infra", ("unit_id", "event", "duration_s", settings.fleet_by))
        parts = [lives, *lemons.halves_of_lives(lives)]
        found = [lemons.lemon_components(part, settings.fleet_by, rate) for part in parts]
    return {"lemon_nodes": found[0], "lemon_effect": lemons.lemon_effect(*found)}

"""Numbers of the checks of the Philly trace: the zone of its log, and its list of machines."""

from ttf.analyses.quality.check_philly import PHILLY_SUMMARY
from ttf.display.metrics import cells

NUMBERS = [
    cells(PHILLY_SUMMARY, "zone", "starts pacific_ruled_out utc_ruled_out"),
    cells(PHILLY_SUMMARY, "machine_list", "listed listed_gpus observed_gpus compared agree"),
]

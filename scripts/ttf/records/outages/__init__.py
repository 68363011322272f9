"""Outages: when a node or a component could not be used, for how long, and why.

causes      planned or unplanned, real or not, and possible domains, by the rules of config/outage_causes.yaml
down        number of units down at once, and the spares that they need
exposure    watched units, where the registry has their number
faults      records that start a new fault, in an outage or not
durations       up times of units, and how they ended
nearness    time to the next outage of another unit of the same place, observed and expected by chance
records     records of outages -> outages.parquet, and the watched time of units
simulate    simulated outages of many units
strata      groups of units, with all or only unplanned outages
"""

"""Outages: when a node or a component could not be used, for how long, and why.

causes      what is planned, what no outage, and where a cause can lie, by the rules of config/outage_causes.yaml
down        how many units are down at once, and the spares that this takes
exposure    which units were watched, where the registry says how many there were
faults      records that began anew, in an outage or not
lives       the time that units were up, and what ended it
nearness    how near in time the next outage of another unit of a place is, and by chance
records     records of outages -> outages.parquet, beside the time in which units were watched
simulate    outages of many units, simulated many times over
strata      groups of units, planned outages or not
"""

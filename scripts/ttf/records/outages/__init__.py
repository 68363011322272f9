"""Outages: when a node or a component could not be used, for how long, and why.

outage_causes       planned or unplanned, real or not, and possible domains, by the rules of config/outage_causes.yaml
outage_records      records of outages -> outages.parquet, and the watched time of units
outage_durations    up times of units, and how they ended
exposure            watched units, where the registry has their number
"""

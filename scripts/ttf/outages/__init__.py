"""Outages: when a node or a component could not be used, for how long, and why.

causes      what is planned, what no outage, and where a cause can lie, by the rules of config/outage_causes.yaml
exposure    which units were watched, where the registry says how many there were
lives       the time that units were up, and what ended it
records     records of outages -> outages.parquet, beside the time in which units were watched
"""

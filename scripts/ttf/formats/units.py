"""The units that a column of requests or of run times may count in."""

# Key of a mapping -> unit -> how many of our small unit it is; the first unit is the registry's default.
UNITS = {
    "runtime": {"s": 1, "min": 60, "h": 3600},
    "gpus": {"gpu": 1000, "percent": 10, "milli": 1},
    "cpus": {"core": 1000, "percent": 10, "milli": 1},
    "memory": {"MiB": 1, "GiB": 1024, "MB": 10**6, "GB": 10**9, "KiB": 2**10, "B": 1},
}
# Of which a MiB is no whole number: what is in them is counted in bytes.
UNITS_IN_BYTES = ("MB", "GB", "KiB", "B")
BYTES_OF_A_MIB = 2**20

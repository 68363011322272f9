"""Parse Slurm's trackable resources (`billing=8,cpu=8,gres/gpu:a100=4,gres/gpu=4,mem=64G,node=1`) into numbers."""

import polars as pl

# MiB in one of each unit; sacct prints memory without a unit in MiB.
_MIB_BY_UNIT = {"K": 1 / 1024, "M": 1, "G": 1024, "T": 1024**2, "P": 1024**3}
# Larger values are implausible in any cluster.
MAX_COUNT = 10**9
MAX_MIB = 10**12

_SIMPLE_PAIR = r"(?:(?:cpu|node|billing|gres/gpu(?::[^=,]+)?)=[0-9]{1,9}|mem=[0-9]{1,8}(?:\.[0-9]+)?[KMG]?)"
# Matches nearly all texts; they need no further check.
_SIMPLE_LIST = f"^{_SIMPLE_PAIR}(?:,{_SIMPLE_PAIR})*$"

TRES_COLUMNS = pl.Schema({"gpu_milli": pl.Int64, "gpu_type": pl.String, "cpu_milli": pl.Int64, "mem_mib": pl.Int64})


def parse_tres(texts: pl.Series) -> pl.DataFrame:
    """Parse the resources in each text: columns TRES_COLUMNS, in the order of `texts`.

    GPUs are `gres/gpu`, or the sum of the typed `gres/gpu:TYPE` if there is no `gres/gpu`; adding both would count each
    GPU twice. A text without GPUs gives 0, a blank text gives a blank. A MIG slice is a GPU of its type, as Slurm
    counts it. Shares of a GPU (`gres/shard`) without a count of GPUs leave gpu_milli blank, because the size of a share
    is not known. gpu_type: the types with a count, in alphabetical order, joined by `|`. Memory of 0 means no limit:
    blank.
    """
    distinct, name = texts.drop_nulls().unique().alias("text"), pl.col("name")
    numbers = (
        _split_pairs(distinct)
        .group_by("row", maintain_order=True)
        .agg(
            untyped=pl.col("milli").filter(name == "gres/gpu").first(),
            typed=pl.col("milli").filter("typed").sum(),
            types=name.str.strip_prefix("gres/gpu:").filter(pl.col("typed") & (pl.col("milli") > 0)).unique().sort(),
            shards=(name.str.starts_with("gres/shard") & (pl.col("milli") > 0)).any(),
            cpus=pl.col("milli").filter(name == "cpu").first(),
            mib=pl.col("mib").filter(name == "mem").first(),
        )
    )
    gpus = pl.coalesce("untyped", "typed")
    table = numbers.select(
        text=distinct,
        gpu_milli=pl.when((gpus > 0) | ~pl.col("shards")).then(gpus),
        gpu_type=pl.when(pl.col("types").list.len() > 0).then(pl.col("types").list.join("|")),
        cpu_milli="cpus",
        mem_mib=pl.when(pl.col("mib") > 0).then("mib"),
    )
    frame = texts.rename("text").to_frame().join(table, on="text", how="left", maintain_order="left")
    return frame.select(*TRES_COLUMNS).cast(TRES_COLUMNS)


def is_unreadable_tres(texts: pl.Series) -> pl.Series:
    """Return whether each text has a part other than `name=value`, or an unreadable number of CPUs, GPUs or memory."""
    distinct, name = texts.filter(~texts.str.contains(_SIMPLE_LIST)).unique(), pl.col("name")
    is_counted = (name == "cpu") | (name == "gres/gpu") | pl.col("typed")
    is_read = (
        (name != "") & (~is_counted | pl.col("milli").is_not_null()) & ((name != "mem") | pl.col("mib").is_not_null())
    )
    rows = _split_pairs(distinct).filter(~is_read.fill_null(False))["row"].unique()
    return texts.is_in(distinct.gather(rows).implode()).fill_null(False)


def _split_pairs(distinct: pl.Series) -> pl.DataFrame:
    """Return a row for each `name=value`: row (index of the text), name, typed, and the value as milli and as mib."""
    name, value = pl.col("name"), pl.col("value")
    return (
        distinct.alias("text")
        .to_frame()
        .with_row_index("row")
        .with_columns(pair=pl.col("text").str.split(","))
        .explode("pair")
        .select(
            "row",
            name=pl.col("pair").str.extract(r"^\s*([^=]*?)\s*="),
            value=pl.col("pair").str.extract(r"=\s*(\d+(?:\.\d+)?[KMGTP]?)\s*$"),
        )
        .with_columns(
            typed=name.str.starts_with("gres/gpu:"),
            milli=(_null_above(MAX_COUNT, value.cast(pl.Float64, strict=False)) * 1000).round(0).cast(pl.Int64),
            mib=parse_mib(value),
        )
    )


def parse_mib(text: pl.Expr) -> pl.Expr:
    """Parse a text such as `64G`, `1.5T`, `512` or, per core or node, `4Gc` as whole MiB; blank if that fails."""
    number = text.str.extract(r"^\s*(\d+(?:\.\d+)?)[KMGTP]?[cn]?\s*$").cast(pl.Float64, strict=False)
    unit = text.str.extract(r"([KMGTP])[cn]?\s*$").replace_strict(_MIB_BY_UNIT, default=1, return_dtype=pl.Float64)
    return _null_above(MAX_MIB, number * unit).round(0, mode="half_away_from_zero").cast(pl.Int64, strict=False)


def _null_above(largest: int, number: pl.Expr) -> pl.Expr:
    return pl.when(number <= largest).then(number)

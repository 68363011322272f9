"""A trace of the study, as the report reads it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import polars as pl

from ttf.display.brief_model import Brief, read_brief
from ttf.display.trace_numbers import Numbers
from ttf.engine import words
from ttf.engine.contract import Table
from ttf.engine.storage.tables import read_table

# Rows per stratification in a table by stratum.
MOST_STRATA = 12


@dataclass(frozen=True)
class Trace:
    """One trace of the study: its registry entry, and the folder of its products."""

    name: str
    info: dict
    folder: Path
    contracts: Mapping[str, Table]

    @property
    def title(self) -> str:
        return self.info.get("title", self.name)

    @property
    def has_jobs(self) -> bool:
        """Whether the trace has jobs; component lifetimes have durations only."""
        return self.info["gives"] == "jobs"

    @property
    def analyses(self) -> list[str]:
        """The names of the analyses that run for this trace."""
        return self.info["analyses"]

    @cached_property
    def metrics(self) -> Numbers:
        return Numbers(json.loads((self.folder / "metrics.json").read_text(encoding="utf-8")))

    @cached_property
    def brief(self) -> Brief:
        return read_brief(self.folder / "brief.json")

    @cached_property
    def figures(self) -> dict[str, dict]:
        """Chart -> its entry in index.json."""
        return json.loads((self.folder / "figures" / "index.json").read_text(encoding="utf-8"))

    def spec(self, chart: str) -> dict:
        """Return a chart as Vega-Lite."""
        return json.loads((self.folder / "figures" / f"{chart}.vl.json").read_text(encoding="utf-8"))

    def table(self, name: str) -> pl.DataFrame:
        contract = self.contracts[name]
        return read_table(self.folder / contract.path, contract)


def list_nonempty_charts(trace: Trace, *names: str) -> tuple[str, ...]:
    """Return the charts of `names` that exist and are not empty."""
    return tuple(name for name in names if name in trace.figures and not trace.figures[name]["empty"])


def label_strata(frame: pl.DataFrame, name: str = "stratum_by") -> pl.DataFrame:
    """Replace the stratification names by headings: GPU type, Number of GPUs."""
    return frame.with_columns(
        pl.Series(name, [words.capitalise(words.stratification_name(kind)) for kind in frame[name]], dtype=pl.String)
    )


def select_largest_strata(frame: pl.DataFrame) -> pl.DataFrame:
    """Return the MOST_STRATA largest strata of each stratification, in the order of the table, without empty ones."""
    frame = frame.filter(pl.col("n") > 0)
    strata_by_size = frame.sort("n", descending=True, maintain_order=True).select("stratum_by", "stratum")
    largest = strata_by_size.unique(maintain_order=True).group_by("stratum_by", maintain_order=True).head(MOST_STRATA)
    return frame.join(largest, on=["stratum_by", "stratum"], how="semi", maintain_order="left")

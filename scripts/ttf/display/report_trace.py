"""A trace of the study as the report sees it."""

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

# Rows of a table by stratum: so many of each kind.
MOST_STRATA = 12


@dataclass(frozen=True)
class Trace:
    """One trace of the study: what the registry says of it, and where its products lie."""

    name: str
    about: dict
    folder: Path
    contracts: Mapping[str, Table]

    @property
    def title(self) -> str:
        return self.about.get("title", self.name)

    @property
    def has_jobs(self) -> bool:
        """False for component lifetimes: the trace has lives and what follows from them, nothing of jobs."""
        return self.about["gives"] == "jobs"

    @property
    def analyses(self) -> list[str]:
        """The names of the analyses with a rule of their own that this trace has."""
        return self.about["analyses"]

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
        """A chart as Vega-Lite."""
        return json.loads((self.folder / "figures" / f"{chart}.vl.json").read_text(encoding="utf-8"))

    def table(self, name: str) -> pl.DataFrame:
        contract = self.contracts[name]
        return read_table(self.folder / contract.path, contract)


def drawn_charts(trace: Trace, *names: str) -> tuple[str, ...]:
    """Those of the charts that the trace has and that are not empty."""
    return tuple(name for name in names if name in trace.figures and not trace.figures[name]["empty"])


def strata_in_words(frame: pl.DataFrame, name: str = "stratum_by") -> pl.DataFrame:
    """The frame with what distinguishes its strata as a heading: GPU type, Number of GPUs."""
    return frame.with_columns(
        pl.Series(name, [words.capital(words.in_words(kind)) for kind in frame[name]], dtype=pl.String)
    )


def largest_strata(frame: pl.DataFrame) -> pl.DataFrame:
    """The MOST_STRATA strata with the most lives of each stratification, in the order of the table; none without."""
    frame = frame.filter(pl.col("n") > 0)
    by_size = frame.sort("n", descending=True, maintain_order=True).select("stratum_by", "stratum")
    largest = by_size.unique(maintain_order=True).group_by("stratum_by", maintain_order=True).head(MOST_STRATA)
    return frame.join(largest, on=["stratum_by", "stratum"], how="semi", maintain_order="left")

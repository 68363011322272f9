"""A trace of the study as the report sees it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from ttf.charts.text import capital, in_words
from ttf.contract import Table
from ttf.errors import StudyError
from ttf.report.blocks import Numbers
from ttf.tables import read_table

# Rows of a table by stratum: so many of each kind.
MOST_STRATA = 12


# The files of the tables that are called otherwise on the page: those of one file share it.
_FILES = {
    "agreement": "tables/runtime_agreement.csv",
    "causes": "tables/mttf.csv",
    "delayed": "tables/mttf_delayed_entry.csv",
    "delays-by-account": "tables/delays.csv",
    "demand": "tables/taxonomy.csv",
    "domains": "tables/taxonomy.csv",
    "epochs": "tables/epochs_summary.csv",
    "incidence": "tables/incidence_at.csv",
    "incidence-bounds": "tables/incidence_at.csv",
    "lemon-ranking": "tables/lemon_nodes.csv",
    "lemons": "tables/lemon_nodes.csv",
    "machines": "tables/listed_machines.csv",
    "models": "tables/lifetime_models.csv",
    "owners": "tables/failures_by_owner.csv",
    "pairs": "tables/logrank.csv",
    "parts": "quality/row_account_by_part.csv",
    "reasons": "tables/taxonomy.csv",
    "rows": "quality/row_account.csv",
    "sizes": "tables/mttf_by_gpus.csv",
    "statistics": "quality/statistics.csv",
    "suggestions": "quality/anomalies.csv",
    "tails": "tables/log_tails.csv",
    "validation": "quality/validation.csv",
    "verdict": "tables/lifetime_verdict.csv",
    "zones": "tables/zone_evidence.csv",
}


@dataclass(frozen=True)
class Trace:
    """One trace of the study: its place in it, what the registry says of it, and where its products lie."""

    name: str
    number: int
    about: dict
    folder: Path
    contracts: Mapping[str, Table]

    @property
    def id(self) -> str:
        """The start of every anchor of this trace: a number, since two names may differ in punctuation alone."""
        return f"t{self.number}"

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

    @property
    def metrics(self) -> Numbers:
        return Numbers(json.loads((self.folder / "metrics.json").read_text(encoding="utf-8")))

    @property
    def figures(self) -> dict[str, dict]:
        """Chart -> its entry in index.json."""
        return json.loads((self.folder / "figures" / "index.json").read_text(encoding="utf-8"))

    def table(self, name: str) -> pl.DataFrame:
        contract = self.contracts[name]
        return read_table(self.folder / contract.path, contract)

    def file_of(self, name: str) -> str:
        """The CSV that a table of the page shows, as a path under results/. Raises StudyError where there is none."""
        file = _FILES.get(name, f"tables/{name.replace('-', '_')}.csv")
        if not (self.folder / file).is_file():
            raise StudyError(f"the table {name} of {self.name} shows {file}, which does not exist")
        return f"{self.name}/{file}"


def strata_in_words(frame: pl.DataFrame, name: str = "stratum_by") -> pl.DataFrame:
    """The frame with what its strata are told apart by as a heading: GPU type, Number of GPUs."""
    return frame.with_columns(pl.Series(name, [capital(in_words(kind)) for kind in frame[name]], dtype=pl.String))


def largest_strata(frame: pl.DataFrame) -> pl.DataFrame:
    """The MOST_STRATA strata with the most lives of each stratification, in the order of the table; none without."""
    frame = frame.filter(pl.col("n") > 0)
    by_size = frame.sort("n", descending=True, maintain_order=True).select("stratum_by", "stratum")
    largest = by_size.unique(maintain_order=True).group_by("stratum_by", maintain_order=True).head(MOST_STRATA)
    return frame.join(largest, on=["stratum_by", "stratum"], how="semi", maintain_order="left")

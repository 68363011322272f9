"""Unit of the sizes of jobs: GPUs; for a trace without them nodes, else cores, else the jobs themselves.

It is chosen once, from the jobs, when they are written (`ttf.formats.common_tables`), and stored in
tables/size_unit.csv. Code, contracts and sentences mention GPUs. An analysis that declares `in_size_unit` reads the
sizes in the trace's unit from the GPU columns (`ttf.records.inputs`). Its files have the unit in their column names
(`node_hours`), and its sentences and charts have the unit in place of GPUs: `SizeUnit.named` and `SizeUnit.worded`.
This module does not import Polars.
"""

import re

# Except properties that only GPUs have.
_GPU = re.compile(r"(?<![A-Za-z])(?:gpu|GPU)(?=s?(?![A-Za-z]))(?![_ ](?:type|activity))")
_GPU_TIME = re.compile(r"\bGPU time\b")
_BEFORE_SENTENCE = re.compile(r"(?:^|[.!?]\s+|\n|\*\*)$")


class SizeUnit(str):
    """A unit in the singular: GPU, node, core or job."""

    __slots__ = ()

    @property
    def is_gpu(self) -> bool:
        return self == GPU

    @property
    def has_nodes(self) -> bool:
        """Whether the unit implies a job's number of nodes, which a node's failure rate needs."""
        return self in (GPU, NODE)

    def named(self, text: str) -> str:
        """Return the name of a column, or of a unit of numbers, with this unit in place of GPUs."""
        return text if self == GPU else _GPU.sub(str(self), text)

    def worded(self, text: str) -> str:
        """Return a heading or sentences with this unit in place of GPUs, capitalised at a sentence's start."""
        if self == GPU:
            return text
        # If each job counts 1, GPU time is run time.
        if self == JOB:
            text = _GPU_TIME.sub(lambda match: _capitalise_at_start("run time", text[: match.start()]), text)
        return _GPU.sub(
            lambda match: _capitalise_at_start(self, text[: match.start()]) if match[0] == "GPU" else match[0], text
        )


def _capitalise_at_start(word: str, preceding: str) -> str:
    return word.capitalize() if _BEFORE_SENTENCE.search(preceding) else str(word)


GPU, NODE, CORE, JOB = UNITS = tuple(map(SizeUnit, ("GPU", "node", "core", "job")))

"""The unit in which sizes of jobs are told: GPUs; where a trace has none, nodes, else cores, else the jobs themselves.

It is resolved once, from the jobs, when they are written (`ttf.formats.common_tables`), and stands in
tables/size_unit.csv. Code, contracts and sentences speak of GPUs. An analysis that declares `in_size_unit` reads the
sizes in the trace's unit from the columns of GPUs (`ttf.records.inputs`); its files have the unit in the names of their
columns (`node_hours`), and what it says and draws has the unit in place of GPUs: `SizeUnit.named` and
`SizeUnit.worded`. Nothing here imports Polars.
"""

import re

# Not what GPUs alone have.
_GPU = re.compile(r"(?<![A-Za-z])(?:gpu|GPU)(?=s?(?![A-Za-z]))(?![_ ](?:type|activity))")
_GPU_TIME = re.compile(r"\bGPU time\b")
_BEFORE_SENTENCE = re.compile(r"(?:^|[.!?]\s+|\n|\*\*)$")


class SizeUnit(str):
    """A word of ours, in the singular: GPU, node, core or job."""

    __slots__ = ()

    @property
    def is_gpu(self) -> bool:
        return self == GPU

    @property
    def has_nodes(self) -> bool:
        """Whether it tells on how many nodes a job runs, without which there is no failure rate of a node."""
        return self in (GPU, NODE)

    def named(self, text: str) -> str:
        """The name of a column, or of a unit of numbers, with this unit in place of GPUs."""
        return text if self == GPU else _GPU.sub(str(self), text)

    def worded(self, text: str) -> str:
        """A heading or sentences of ours with this unit in place of GPUs, capital where a sentence begins."""
        if self == GPU:
            return text
        # The time of jobs that count alike is their run time.
        text = _GPU_TIME.sub(lambda at: _capital("run time", text[: at.start()]), text) if self == JOB else text
        return _GPU.sub(lambda at: _capital(self, text[: at.start()]) if at[0] == "GPU" else at[0], text)


def _capital(word: str, before: str) -> str:
    return word.capitalize() if _BEFORE_SENTENCE.search(before) else str(word)


GPU, NODE, CORE, JOB = UNITS = tuple(map(SizeUnit, ("GPU", "node", "core", "job")))

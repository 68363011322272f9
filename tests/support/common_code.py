"""Make a study's digits independent of the processor, as its jobs do; imported before NumPy."""

from ttf.engine.process.entry import select_common_code

select_common_code()

"""Two nodes of a real Slurm, which keeps jobs to the memory they asked for."""

import pytest
from one_machine_slurm import Slurm, one_machine_slurm, until, why_not


@pytest.fixture(scope="session")
def slurm():
    if reason := why_not():
        pytest.skip(reason)
    with one_machine_slurm(CPUS="4") as folder:
        started = Slurm(folder)
        # Without cgroups, the one way in which Slurm holds a job to its memory.
        with (folder / "slurm.conf").open("a") as conf:
            conf.write("JobAcctGatherParams=OverMemoryKill\n")
        started.stop_controller()
        started.start_controller()
        for node in ("n1", "n2"):
            started.restart_node(node)
        until(lambda: started("sinfo", "-h", "-t", "idle", "-o", "%D").strip() == "2")
        yield started

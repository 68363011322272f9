"""Two nodes of a real Slurm that enforces the requested memory."""

import pytest
from one_machine_slurm import Slurm, missing_requirements, one_machine_slurm, wait_until


@pytest.fixture(scope="session")
def slurm():
    if reason := missing_requirements():
        pytest.skip(reason)
    with one_machine_slurm(CPUS="4") as folder:
        cluster = Slurm(folder)
        # Without cgroups this is the only way to enforce memory.
        with (folder / "slurm.conf").open("a") as conf:
            conf.write("JobAcctGatherParams=OverMemoryKill\n")
        cluster.stop_controller()
        cluster.start_controller()
        for node in ("n1", "n2"):
            cluster.restart_node(node)
        wait_until(lambda: cluster("sinfo", "-h", "-t", "idle", "-o", "%D").strip() == "2")
        yield cluster

"""Rule write_manifest: write hashes, rules, scripts, inputs and parameters of every product."""

from ttf.engine.process.entry import run_rule


def main(snakemake):
    from pathlib import Path

    from ttf.engine.provenance.digests import MEMORY, Memory
    from ttf.engine.provenance.manifest import manifest
    from ttf.engine.provenance.seal import sealed

    memory, file, params = Memory(MEMORY), snakemake.output.manifest, snakemake.params
    document = manifest(params.jobs, params.study, params.folders, memory)
    Path(file).write_bytes(sealed(document))
    # The cached digest reveals a replaced manifest, even if it has a valid seal.
    memory.keep(memory.digests([file]))
    edited = sum("edited" in product for product in document["products"].values())
    return f"{len(document['products']):,} products" + (
        f", {edited} of them edited since their rule made them" if edited else ""
    )


run_rule(main, snakemake)

"""Rule write_manifest: write hashes, rules, scripts, inputs and parameters of every product."""

from ttf.engine.process.entry import run_rule


def main(snakemake) -> str:
    from pathlib import Path

    from ttf.engine.provenance.digests import MEMORY, DigestCache
    from ttf.engine.provenance.manifest import make_manifest
    from ttf.engine.provenance.seal import seal_json

    memory, file, params = DigestCache(MEMORY), snakemake.output.manifest, snakemake.params
    document = make_manifest(params.jobs, params.study, params.folders, memory)
    Path(file).write_bytes(seal_json(document))
    # The cached digest reveals a replaced manifest, even if it has a valid seal.
    memory.store(memory.digests([file]))
    edited = sum("edited" in product for product in document["products"].values())
    return f"{len(document['products']):,} products" + (
        f", {edited} of them edited since their rule made them" if edited else ""
    )


run_rule(main, snakemake)

"""Rule write_manifest: hashes, rules, scripts, inputs and parameters of every product."""

from ttf.entry import run_rule


def main(snakemake):
    import json
    from pathlib import Path

    from ttf.provenance.digests import SNAKEMAKE, Memory
    from ttf.provenance.manifest import manifest

    made = manifest(snakemake.params.jobs, snakemake.params.study, Memory(SNAKEMAKE / "sha256.json"))
    text = json.dumps(made, indent=1, ensure_ascii=False, allow_nan=False)
    Path(snakemake.output.manifest).write_text(text + "\n", encoding="utf-8", errors="surrogateescape")
    edited = sum("edited" in product for product in made["products"].values())
    return f"{len(made['products']):,} products" + (
        f", {edited} of them edited since their rule made them" if edited else ""
    )


run_rule(main, snakemake)

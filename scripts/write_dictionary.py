"""Rule write_dictionary: describe every column of every table, for programs that read the results."""

from ttf.engine.process.entry import run_rule


def main(snakemake) -> str:
    from ttf.engine.storage.tables import write_product
    from ttf.page.publish.dictionary import group_by_analysis, to_table
    from ttf.page.report_contracts import DICTIONARY

    rows = write_product(to_table(group_by_analysis(tuple(snakemake.params.folders))), DICTIONARY, snakemake.output[0])
    return f"{rows:,} columns"


run_rule(main, snakemake)

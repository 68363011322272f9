"""Rule write_dictionary: what every column of every table is, for programs that read the results."""

from ttf.entry import run_rule


def main(snakemake):
    from ttf.publish.dictionary import as_table, by_analysis
    from ttf.report_contracts import DICTIONARY
    from ttf.tables import write_product

    rows = write_product(as_table(by_analysis(tuple(snakemake.params.folders))), DICTIONARY, snakemake.output[0])
    return f"{rows:,} columns"


run_rule(main, snakemake)

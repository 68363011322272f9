"""Rule recompute_ettr: recompute the statements of the paper about effective training time."""

from ttf.engine.process.entry import run_rule


def main(snakemake) -> str:
    from ttf.engine.storage.tables import write_product
    from ttf.page.replication.ettr_reference import reference_table
    from ttf.page.report_contracts import ETTR_REFERENCE

    table = reference_table()
    write_product(table, ETTR_REFERENCE, snakemake.output.reference)
    return f"{int(table['reproduced'].sum())} of {table.height} statements reproduced"


run_rule(main, snakemake)

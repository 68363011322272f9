"""Rule score_claims: compare published findings with the tables of the study."""

from ttf.engine.process.entry import run_rule


def main(snakemake):
    from collections import Counter
    from functools import cache
    from pathlib import Path

    import yaml
    from ttf.engine.storage.tables import read_table, write_product
    from ttf.page.replication.findings import merge_layouts, read_claims
    from ttf.page.replication.published_values import published_values
    from ttf.page.replication.scorecard import implied_counts, scorecard
    from ttf.page.replication.study_tables import build_study_tables
    from ttf.page.report_contracts import IMPLIED_N, PUBLISHED_VALUES, SCORECARD, STUDY_TABLES
    from ttf.page.results_tables import load_all_contracts

    # libyaml's loader, if installed, takes a seventh of the time.
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    params, output = snakemake.params, snakemake.output
    documents = [yaml.load(Path(file).read_text(encoding="utf-8"), Loader=loader) for file in snakemake.input.claims]
    claims = read_claims(documents)
    contracts_by_name, table_paths = load_all_contracts(tuple(params.folders)), iter(snakemake.input.tables)
    paths = {(trace, name): next(table_paths) for trace, names in params.tables.items() for name in names}

    @cache  # many claims read one table
    def read_table_if_present(trace, name):
        path = paths.get((trace, name))
        return None if path is None else read_table(path, contracts_by_name[name])

    scored = scorecard(claims, params.study, read_table_if_present)
    write_product(scored, SCORECARD, output.scorecard)
    write_product(published_values(claims), PUBLISHED_VALUES, output.published)
    implied = implied_counts(claims, params.study, read_table_if_present)
    write_product(implied, IMPLIED_N, output.implied)
    layouts = merge_layouts(documents)
    cells = build_study_tables(layouts, claims, params.study, read_table_if_present, scored, implied)
    write_product(cells, STUDY_TABLES, output.tables)
    return ", ".join(f"{count} {verdict}" for verdict, count in Counter(scored["verdict"]).items())


run_rule(main, snakemake)

"""Rule score_claims: compare published findings with the tables of the study."""

from ttf.engine.process.entry import run_rule


def main(snakemake):
    from collections import Counter
    from pathlib import Path

    import yaml
    from ttf.engine.storage.tables import read_table, write_product
    from ttf.page.replication.published_values import published_values
    from ttf.page.replication.scorecard import implied_counts, scorecard
    from ttf.page.report_contracts import IMPLIED_N, PUBLISHED_VALUES, SCORECARD
    from ttf.page.results_tables import load_all_contracts

    # libyaml's loader, if installed, takes a seventh of the time.
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    params, output, claims = snakemake.params, snakemake.output, []
    for file in snakemake.input.claims:
        document = yaml.load(Path(file).read_text(encoding="utf-8"), Loader=loader)
        for claim in document["claims"]:
            source = document["sources"][claim["source"]]
            title, year = (source, None) if isinstance(source, str) else (source["title"], source["year"])
            claims.append(claim | {"source": title, "year": year})
    contracts_by_name, table_paths = load_all_contracts(tuple(params.folders)), iter(snakemake.input.tables)
    paths = {(trace, name): next(table_paths) for trace, names in params.tables.items() for name in names}

    def read_table_if_present(trace, name):
        path = paths.get((trace, name))
        return None if path is None else read_table(path, contracts_by_name[name])

    scored = scorecard(claims, params.study, read_table_if_present)
    write_product(scored, SCORECARD, output.scorecard)
    write_product(published_values(claims), PUBLISHED_VALUES, output.published)
    write_product(implied_counts(claims, params.study, read_table_if_present), IMPLIED_N, output.implied)
    return ", ".join(f"{count} {verdict}" for verdict, count in Counter(scored["verdict"]).items())


run_rule(main, snakemake)

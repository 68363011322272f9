"""Rule score_claims: published findings beside what the tables of the study give."""

from ttf.entry import run_rule


def main(snakemake):
    from collections import Counter
    from pathlib import Path

    import yaml
    from ttf.replication.scorecard import implied_counts, scorecard
    from ttf.tables import read_csv, write_csv

    # libyaml's loader, where it is there, takes a seventh of the time.
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    claims = yaml.load(Path(snakemake.input.claims).read_text(encoding="utf-8"), Loader=loader)
    study, given = snakemake.params.study, iter(snakemake.input.tables)
    paths = {(trace, name): next(given) for trace, names in snakemake.params.tables.items() for name in names}

    def table(trace, name):
        path = paths.get((trace, name))
        return None if path is None else read_csv(path)

    for claim in claims["claims"]:
        claim["source"] = claims["sources"][claim["source"]]
    scored = scorecard(claims["claims"], study, table)
    write_csv(scored, snakemake.output.scorecard)
    write_csv(implied_counts(claims["claims"], study, table), snakemake.output.implied)
    return ", ".join(f"{count} {verdict}" for verdict, count in Counter(scored["verdict"]).items())


run_rule(main, snakemake)

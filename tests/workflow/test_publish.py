"""What leaves the study: Snakemake's own report, the site for a static host, the archive for a repository."""

import json
import re


def test_snakemake_report_has_the_tables_and_charts_by_theme(study):
    study.snakemake("--report", "logs/snakemake-report.html")
    page = (study.folder / "logs/snakemake-report.html").read_text()
    results = json.loads(re.search(r"var results = (\{.*?\});?\n", page)[1])
    categories = json.loads(re.search(r"var categories = (\{.*?\});?\n", page)[1])
    charts = {name for name, about in results.items() if about["mime_type"] == "image/svg+xml"}
    assert charts == {str(path.relative_to(study.folder)) for path in study.folder.glob("results/*/figures/*.svg")}
    assert {"results/scorecard.csv", "results/sample/tables/mttf.csv"} <= results.keys()
    assert all(about["labels"]["trace"] in ("sample", "all") for about in results.values())
    assert all("synthetic" in about["caption"] for name, about in results.items() if "/sample/" in name)
    assert {"Data quality", "Outcomes", "Survival and mean time to failure", "Published findings"} <= categories.keys()
    assert str(study.folder) not in page
    assert 'href=\\"../results/report/index.html\\"' in page

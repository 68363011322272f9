"""Published values beside the tiles: intervals of printed counts, which tiles list them, how long a fold gets."""

from types import SimpleNamespace

import pytest
from made_numbers import ABOUT, COMPONENTS, numbers, plain, proxy
from scipy.stats import chi2
from shipped_claims import DOCUMENT
from ttf.display.brief_model import Tile
from ttf.display.phrases import count_words, to_html
from ttf.page.replication.findings import read_claims
from ttf.page.replication.published_values import published_values
from ttf.page.report.tile_comparisons import MOST_WORDS, compare_tiles
from ttf.page.report_contracts import PUBLISHED_VALUES
from ttf.study.configuration.claims import load_claims
from ttf.study.configuration.messages import ConfigError

HOSTILE = "<script>{a.b|1}</script>"


PUBLISHED = published_values(read_claims([DOCUMENT]))


def compare(m, trace_info=ABOUT, states=("shown", "shown", "shown"), published=PUBLISHED, name="mine"):
    tiles = [Tile(*parts, "1") for parts in zip(("node_rate", "mttf", "availability"), "abc", states, strict=True)]
    trace = SimpleNamespace(
        name=name,
        metrics=m,
        info={"datasets": [name], **trace_info},
        has_jobs=trace_info["gives"] == "jobs",
        brief=SimpleNamespace(tiles=tiles),
    )
    return {tile: [*map(plain, lines)] for tile, lines in compare_tiles(published, trace).items()}


def made(gpus=1024, node_gpus=8, **values):
    return numbers(ettr__assumed__size_of_the_run=(float(gpus), "GPUs"), sizes__node_gpus=(node_gpus, "GPUs"), **values)


def test_the_interval_of_printed_counts_is_garwoods():
    PUBLISHED_VALUES.check(PUBLISHED)
    rows = {(row["id"], row["tile"]): row for row in PUBLISHED.iter_rows(named=True)}
    rate, mttf = (rows["llama3-unplanned", tile] for tile in ("node_rate", "mttf"))
    # 419 interruptions of 16,384 GPUs, 8 a node, in 54 days.
    node_days, low, high = 2048 * 54, chi2.ppf(0.05, 2 * 419) / 2, chi2.ppf(0.95, 2 * 420) / 2
    expected = [1000 * count / node_days for count in (419, low, high)]
    assert [rate[name] for name in ("value", "ci_low", "ci_high")] == pytest.approx(expected)
    assert [mttf[name] for name in ("value", "ci_low", "ci_high")] == pytest.approx(
        [24 * 54 / count for count in (419, high, low)]
    )
    assert (rate["year"], rate["events"], round(rate["value"], 2)) == (2024, 419, 3.79)
    outages = rows["infinitehbd-faults", "node_rate"]
    assert outages["value"] == pytest.approx(1000 * 584 / (400 * 348.98))
    rsc = rows["rsc1-node-failure-rate", "node_rate"]
    assert (rsc["value"], rsc["ci_low"], rsc["ci_high"], rsc["events"]) == (6.5, None, None, None)
    # 17% of 30,207 GPUs in 100,889 GPU-years of 365 days.
    failures = 0.17 * 30_207
    assert rows["titan-failed", "node_rate"]["value"] == pytest.approx(1000 * failures / 100_889 / 365, rel=1e-5)
    assert rows["titan-gpu-years", "mttf"]["value"] == pytest.approx(100_889 * 8760 / failures, rel=1e-5)


def test_a_tile_lists_what_is_defined_alike():
    lines = compare(made())
    assert lines["node_rate"][2] == (
        "Llama 3: 3.79, 90% CI 3.49–4.11 if independent (Dubey et al. 2024; unplanned; calendar time)"
    )
    assert [line.partition(":")[0] for line in (*lines["node_rate"], *lines["mttf"])] == [
        *("RSC-1", "RSC-2", "Llama 3", "RSC-1")
    ]
    assert [line.partition(":")[0] for line in compare(made(16_384))["mttf"]] == ["RSC-1", "Llama 3"]
    assert "mttf" not in compare(made(512))
    assert "node_rate" not in compare(made(node_gpus=4))
    assert compare(proxy()) == {}, "a rate of any failure is compared with none"
    assert compare(made(), states=("withheld",) * 3) == {}
    component = numbers(sizes__basis="component", sizes__node_gpus=(8, "GPUs"))
    (line,) = compare(component, COMPONENTS)["node_rate"]
    assert line.startswith("InfiniteHBD: 4.18, 90% CI 3.90–4.48")
    gpus = compare(component, COMPONENTS | {"unit": "GPU"})
    assert [gpus[tile][0][:15] for tile in ("node_rate", "mttf")] == ["Titan: 0.139 (O", "Titan: 19.6 yea"]
    assert compare(component, COMPONENTS | {"unit": "drive"}) == {}
    assert compare(component, COMPONENTS, name="infinitehbd") == {}, "a trace is not one of the others"


def test_a_fold_is_short_escaped_and_says_what_it_leaves_out():
    claim = {"id": "a", "of": "t", "source": HOSTILE, "year": 2025, "evidence": "printed", "published": 0.9}
    tile = {"tile": "availability", "name": HOSTILE, "remark": HOSTILE, "basis": "infra"}
    lines = compare(made(), published=published_values([claim | {"tiles": [tile] * 15}]))["availability"]
    assert sum(map(count_words, lines)) <= MOST_WORDS
    assert lines[-1] == f"{16 - len(lines)} more in published_values.csv"
    trace_lines = published_values([claim | {"tiles": [tile]}])
    html = "".join(to_html(line) for line in compare(made(), published=trace_lines)["availability"])
    assert "<script" not in html and "<data" not in html and "&lt;script" in html
    for m, trace_info in ((made(1024), ABOUT), (made(16_384), ABOUT), (numbers(), COMPONENTS)):
        assert "more in" not in str(compare(m, trace_info)), "the shipped values fit"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("{title: A paper, year: 2025}", "A paper"), r"claims\.a\.source: x needs a year for tiles: write it under"),
        (("published: 12", "published: 0.5"), r"claims\.a\.published: 0\.5 is no count, as exposure_days"),
        (("mttf", "mtbf"), r"claims\.a\.tiles\.A\.tile: 'mtbf' is not allowed; did you mean mttf\?"),
        (("year: 2025", "year: soon"), r"sources\.x\.year: found the text 'soon'; expected"),
    ],
)
def test_an_error_names_the_claim_and_the_key(tmp_path, change, message):
    file = tmp_path / "claims.yaml"
    text = """
sources: {x: {title: A paper, year: 2025}}
claims:
  - {id: a, of: mine, source: x, statement: s, published: 12, evidence: printed, missing: data,
     tiles: [{tile: mttf, name: A, basis: infra, exposure_days: 3}]}
"""
    file.write_text(text)
    assert len(load_claims(file)["claims"]) == 1
    file.write_text(text.replace(*change))
    with pytest.raises(ConfigError, match=message):
        load_claims(file, "claims.yaml")

"""A trace with one file per week: its first screen has the changes of the last week, updated by each file."""

import json
import random
import re

import pytest
import whole_study

REGISTRY = {
    "mine": {
        "format": "table",
        "folder": "weeks",
        "mapping": {
            "job_id": "id",
            "user": "user",
            "submit": "submit",
            "start": "start",
            "end": "end",
            "status": "state",
        },
        "times": {"format": "epoch"},
        "outcomes": {"success": ["ok"], "failure": ["bad"]},
    }
}
WEEK, MONDAY = 7 * 86_400, 1_735_776_000


def add_week(folder, number, share):
    """Write 400 jobs of 20 users; a share fails; some run past the end of the week."""
    draw = random.Random(number)
    rows = ["id,user,submit,start,end,state"]
    for job, submit in enumerate(sorted(MONDAY + number * WEEK + draw.randrange(WEEK) for _ in range(400))):
        start = submit + draw.randrange(600)
        end = start + int(draw.expovariate(1 / 20_000)) + 1
        rows.append(
            f"{number}-{job},u{draw.randrange(20)},{submit},{start},{end},{'bad' if draw.random() < share else 'ok'}"
        )
    (folder / "weeks").mkdir(exist_ok=True)
    (folder / f"weeks/week{number}.csv").write_text("\n".join(rows) + "\n")


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Return a study's folder by number of weeks, that of nine with its page; many jobs of the tenth week fail."""
    folder_by_weeks = {}
    for weeks in (1, 9, 10):
        folder_by_weeks[weeks] = folder = tmp_path_factory.mktemp("weeks")
        for number in range(weeks):
            add_week(folder, number, 0.5 if number == 9 else 0.2)
        left_out = () if weeks == 9 else whole_study.OF_PAGES
        config = {"study": ["mine"], "registry": REGISTRY}
        result = whole_study.run(config, folder, only=lambda job, left_out=left_out: job.script not in left_out)
        assert (result.job, result.refused, result.crash, result.warned) == (None, None, None, [])
    return folder_by_weeks


def read_values(folder):
    metrics = json.loads((folder / "results/mine/metrics.json").read_text())
    return {key: metric["value"] for key, metric in metrics.items()}


def test_one_part_has_no_changes(folders):
    assert not [key for key in read_values(folders[1]) if key.startswith(("changes.", "forecast."))]


def test_a_page_of_parts_has_what_changed_above_its_tiles(folders):
    text = (folders[9] / "results/studies/mine/report/index.html").read_text()
    metrics = read_values(folders[9])
    positions = [text.index(f'class="{css_class}') for css_class in ("facts", "bottom-line", "changed card", "tiles")]
    assert positions == sorted(positions)
    strip = re.sub("<[^>]+>", "", re.search('<div class="strip.*?</div>', text, re.DOTALL)[0])
    assert "What changed with week8.csv: No measurable change in 6 measures;" in strip.replace("\xa0", " ")
    bottom_line = re.search('<p class="bottom-line"[^>]*>(.*?)</p>', text, re.DOTALL)[1]
    assert "cannot be estimated" in bottom_line.partition("</b>")[2], "the second sentence"
    assert metrics["changes.parts_before"] == 8
    assert metrics["changes.changed"] == 0
    assert "no change comes from another version" in text


def test_another_part_changes_the_numbers(folders):
    metrics_before, metrics_after = read_values(folders[9]), read_values(folders[10])
    assert metrics_before["changes.failure_share.verdict"] == "within chance"
    assert metrics_after["changes.failure_share.verdict"] == "changed"
    assert metrics_after["changes.failure_share.after"] > 0.4 > 0.3 > metrics_after["changes.failure_share.before"]
    assert metrics_after["changes.failure_share.low"] > 0
    # The ninth week is now among the previous parts.
    assert metrics_after["changes.failure_share.n_before"] > metrics_before["changes.failure_share.n_before"]
    # The forecast has one more week, and that week was outside its interval.
    assert metrics_after["forecast.failed_jobs.tried"] == metrics_before["forecast.failed_jobs.tried"] + 1
    assert metrics_after["forecast.failed_jobs.held"] < metrics_after["forecast.failed_jobs.tried"]
    assert "forecast.infra_failures.high" not in metrics_after

"""A trace that comes as a file a week: its page begins with what the last week changed, and goes with each new file."""

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
    """400 jobs of 20 users, of which so many fail; some run over the end of the week."""
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


def page_of(folder):
    done = whole_study.run({"study": ["mine"], "registry": REGISTRY}, folder)
    assert (done.job, done.refused, done.crash, done.warned) == (None, None, None, [])
    text = (folder / "results/studies/mine/report/index.html").read_text()
    metrics = json.loads((folder / "results/mine/metrics.json").read_text())
    return text, {key: about["value"] for key, about in metrics.items()}


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """By the number of weeks; in the last of all many jobs fail."""
    found = {}
    for weeks in (1, 9, 10):
        folder = tmp_path_factory.mktemp("weeks")
        for number in range(weeks):
            add_week(folder, number, 0.5 if number == 9 else 0.2)
        found[weeks] = page_of(folder)
    return found


def test_a_page_of_one_part_says_nothing_of_it(pages):
    text, metrics = pages[1]
    assert 'id="changed"' not in text
    assert not [key for key in metrics if key.startswith(("changes.", "forecast."))]


def test_a_page_of_parts_begins_with_what_changed(pages):
    text, metrics = pages[9]
    places = [text.index(f'class="{what}') for what in ("changed card", "facts", "bottom-line", "tiles")]
    assert places == sorted(places)
    head = re.sub("<[^>]+>", "", re.search('<div class="changed.*?</h2>', text, re.DOTALL)[0])
    assert "What changed with week8.csv" in head
    assert metrics["changes.parts_before"] == 8
    assert metrics["changes.changed"] == 0
    assert "no change comes from another version" in text


def test_another_part_moves_it(pages):
    (_, before), (text, after) = pages[9], pages[10]
    assert "What changed with" in text and "week9.csv" in text
    assert before["changes.failure_share.verdict"] == "within chance"
    assert after["changes.failure_share.verdict"] == "changed"
    assert after["changes.failure_share.after"] > 0.4 > 0.3 > after["changes.failure_share.before"]
    assert after["changes.failure_share.low"] > 0
    # Before, too: what the ninth week was is now of the parts before.
    assert after["changes.failure_share.n_before"] > before["changes.failure_share.n_before"]
    # The forecast has a week more, and that was beyond what was forecast.
    assert after["forecast.failed_jobs.weeks"] == before["forecast.failed_jobs.weeks"] + 1
    assert after["forecast.failed_jobs.held"] < after["forecast.failed_jobs.tried"]
    assert "forecast.infra_failures.high" not in after

"""The first screen of a trace in parts on a small desk: what changed on two lines, MTTF, ETTR and the first action."""

import re

import pytest
from acceptance import CHROMIUM, OPEN_ALL, PHONE, open_page
from study_runs import ROOT

pytestmark = pytest.mark.skipif(not CHROMIUM, reason="chromium is not installed: make test-tools")

SMALL_DESK = (1280, 900)
LINE_PX = 21
# As long as title and summary get (MOST_LETTERS of ttf.page.brief.changes).
LONGEST_SUMMARY = (
    "4 of 6 measures changed (≠): the failure rate of nodes 9.80 → 14.1 and the ETTR 91.1% → 85.3%; suspect nodes: "
)
LONGEST_SUMMARY += "new gpu-rack01-node012, gpu-rack01-node013, gone gpu-rack02-node007; 2 with "


@pytest.fixture(scope="module")
def page_file(finished_slurm):
    """Return the page of the Slurm sample, two dumps, for the size of its largest runs."""
    return finished_slurm.folder / "results/studies/sample_slurm/report/index.html"


@pytest.mark.parametrize("colours", ["light", "dark"])
def test_the_first_screen_of_a_desk_has_mttf_ettr_and_the_first_action(page_file, browser, colours):
    with open_page(browser, page_file, SMALL_DESK, colours) as (page, page_faults):
        bottoms = {}
        for part in (".first-action", ".strip", "[data-tile=mttf]", "[data-tile=ettr]"):
            box = page.locator(part).bounding_box()
            bottoms[part] = box["y"] + box["height"]
        assert max(bottoms.values()) <= SMALL_DESK[1], bottoms
        assert bottoms[".strip"] < page.locator(".tiles").bounding_box()["y"]
        first_action = page.locator("#actions tbody b").first.inner_text()
        assert page.locator(".first-action").inner_text() == f"Do first: {first_action}"
        # Both sentences of the bottom line, the scheduled share first and the queue apart.
        assert re.search(
            r"28\.3% of ended jobs failed.*to be productive [\d.]+% of its scheduled time\.$",
            page.locator(".bottom-line").inner_text(),
        )
        ettr = page.locator("[data-tile=ettr]").inner_text()
        assert re.search(r"[\d.]+% of scheduled time", ettr)
        assert re.search(r"queues 2\.77.h; the wall-clock ETTR is", ettr)
        assert page_faults == []


def test_the_first_action_is_on_the_phone_and_in_print(page_file, browser):
    with open_page(browser, page_file, PHONE) as (page, page_faults):
        action, tiles = page.locator(".first-action"), page.locator(".tiles")
        assert action.bounding_box()["y"] < tiles.bounding_box()["y"]
        page.emulate_media(media="print")
        assert action.is_visible() and page_faults == []


@pytest.mark.parametrize("size", [SMALL_DESK, PHONE])
def test_a_tile_folds_published_values_that_are_defined_alike(page_file, browser, size):
    with open_page(browser, page_file, size) as (page, page_faults):
        tile, fold = page.locator("[data-tile=node_rate]"), page.locator("[data-tile=node_rate] .others")
        assert page.locator(".others").count() == 1, "no value is published for a run of 512 GPUs"
        assert not fold.locator("li").first.is_visible()
        link, summary = tile.locator(".more").bounding_box(), fold.locator("summary").bounding_box()
        assert link["y"] < summary["y"] + summary["height"] / 2 < link["y"] + link["height"], "the fold takes no line"
        fold.locator("summary").click()
        lines = fold.locator("li").all_inner_texts()
        assert [line.partition(":")[0] for line in lines] == ["RSC-1", "RSC-2", "Llama 3"]
        assert len(fold.inner_text().split()) <= 40
        assert page.evaluate("document.documentElement.scrollWidth") <= size[0]
        assert page_faults == []


def test_the_card_of_a_number_names_the_file_of_its_sentence(page_file, browser):
    files = {
        ".bottom-line": "scripts/ttf/page/brief/bottom_line.py",
        ".tile": "scripts/ttf/page/brief/tiles.py",
        "#outcomes .finding": "scripts/ttf/analyses/outcomes/split_outcomes/page.py",
        "#outcomes-details p": "scripts/ttf/analyses/outcomes/split_outcomes/outcomes.qmd",
        "#checked + dl dd": "scripts/ttf/analyses/factors/estimate_hazards/page.py",
        "#quality li": "scripts/ttf/page/brief/grade.py",
    }
    with open_page(browser, page_file, SMALL_DESK) as (page, page_faults):
        page.evaluate(OPEN_ALL, True)
        marks = page.evaluate("[...document.querySelectorAll('[data-file]')].map((mark) => mark.dataset.file)")
        assert len(marks) > 40 and [name for name in marks if not (ROOT / name).is_file()] == []
        for selector, file in files.items():
            page.locator(f"{selector} data[data-key]").first.click()
            details = page.locator(".number-card details")
            assert details.locator("code").text_content() == file, selector
            assert not details.locator("code").is_visible()
            details.locator("summary").click()
            assert details.locator("code").is_visible()
            page.keyboard.press("Escape")
        assert page_faults == []


def test_what_changed_is_at_most_two_lines_and_a_fold(page_file, browser):
    with open_page(browser, page_file, SMALL_DESK) as (page, page_faults):
        strip = page.locator("#changed .strip")
        text = " ".join(strip.inner_text().split())
        assert text.startswith("What changed with 2025-b.txt: No measurable change in 6 measures;")
        assert not page.locator("#changed .forecast").is_visible()
        page.evaluate("text => { document.querySelector('.strip p').textContent = text; }", LONGEST_SUMMARY)
        assert strip.bounding_box()["height"] <= 2 * LINE_PX + 1
        page.click("#changed summary")
        assert page.locator("#changed .mark").count() == 6
        assert page.locator("#changed .forecast").is_visible()
        assert page.locator("#changed .tests dl").is_visible()
        assert page_faults == []


def test_what_changed_fits_on_a_phone(page_file, browser):
    with open_page(browser, page_file, PHONE) as (page, page_faults):
        page.evaluate("document.querySelector('#changed details').open = true")
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE[0]
        assert page.locator("#changed .strip").bounding_box()["y"] < page.locator(".facts").bounding_box()["y"]
        assert page_faults == []

"""Pages in Chromium, offline: the acceptance list of docs/design.md, the keyboard, the planner, paper."""

import re

import acceptance
import pytest
from acceptance import CHROMIUM, DESK, PHONE, open_page
from study_runs import PAGE

pytestmark = pytest.mark.skipif(not CHROMIUM, reason="chromium is not installed: make test-tools")


def test_the_page_is_accepted(finished_study, browser):
    assert acceptance.faults(browser, finished_study.folder / PAGE, finished_study.folder / "results/sample") == []


def test_failure_risk_has_a_finding_pictures_in_its_fold_and_its_limits(finished_study, browser):
    with open_page(browser, finished_study.folder / PAGE, anchor="#risk") as (page, page_faults):
        finding = page.locator("#risk .finding data[data-key^='risk.']")
        assert finding.first.is_visible()
        assert not page.locator("#sec-risk-limits").is_visible()
        page.evaluate(acceptance.OPEN_ALL, True)
        for chart in ("risk_calibration", "risk_importance", "risk_dependence", "risk_decisions"):
            assert page.locator(f"#risk figure[data-chart={chart}] svg").first.is_visible()
        assert page.locator("#sec-risk-limits").is_visible()
        assert page_faults == []


def test_the_keyboard_goes_through_the_whole_page(finished_study, browser):
    with open_page(browser, finished_study.folder / PAGE) as (page, page_faults):
        # Numbers become tab stops when the browser is idle.
        page.wait_for_function("document.querySelectorAll('data[tabindex]').length > 50")
        page.keyboard.press("Tab")
        assert page.evaluate(acceptance.FOCUSED) == ["skip", True]
        page.keyboard.press("Enter")
        assert page.evaluate("location.hash") == "#overview"
        page.evaluate("history.replaceState(null, '', location.pathname); document.querySelector('.skip').focus()")
        kinds, faults = acceptance.tab_stops(page)
        assert faults == []
        assert {"contents", "tools", "figure", "planner", "fold", "number"} <= set(kinds)
        assert kinds.index("contents") < kinds.index("tools") < kinds.index("number")

        active_id = "document.activeElement.id"
        page.evaluate("scrollTo(0, 0); document.activeElement.blur()")
        visited_sections = []
        for key in "jjjkk":
            page.keyboard.press(key)
            visited_sections.append(page.evaluate(active_id))
        sections = page.evaluate("[...document.querySelectorAll('main > section[id]')].map((one) => one.id)")
        assert visited_sections == [sections[index] for index in (1, 2, 3, 2, 1)]

        page.locator("#outcomes data[data-key][tabindex]").first.focus()
        page.keyboard.press("Enter")
        assert page.locator(".number-card").is_visible()
        page.keyboard.press("Escape")
        assert not page.locator(".number-card").is_visible()
        assert page.evaluate("document.activeElement.matches('#outcomes data[data-key]')")
        assert page_faults == []


@pytest.mark.parametrize("anchor", ["#m:outcomes.failure_share", "#:~:text=outcomes.failure_share"])
def test_an_address_opens_what_it_names_and_finding_does(finished_study, browser, anchor):
    """A text fragment uses the same search as Chromium's find in page."""
    with open_page(browser, finished_study.folder / PAGE, anchor=anchor) as (page, page_faults):
        page.wait_for_function("document.getElementById('m:outcomes.failure_share').checkVisibility()")
        assert page_faults == []


def test_open_all_opens_all_and_closes_them(finished_study, browser):
    with open_page(browser, finished_study.folder / PAGE) as (page, page_faults):
        button = page.locator(".sidebar [data-do=open-all]")
        for shut in (0, page.locator("main details.details").count()):
            button.click()
            page.wait_for_function(
                "(shut) => document.querySelectorAll('main details.details:not([open])').length === shut", arg=shut
            )
        assert page_faults == []


def test_the_planner_answers_on_a_phone_and_keeps_its_state_in_the_address(finished_study, browser):
    answers = (
        "Object.fromEntries([...document.querySelectorAll('#planner output')].map((one) => [one.name, one.value]))"
    )
    with open_page(browser, finished_study.folder / PAGE, PHONE) as (page, page_faults):
        blank_answers = page.evaluate(answers)
        # This trace has no failure rate to plan a run with.
        assert set(blank_answers.values()) == {"–"}
        assert page.locator("#planner .why").is_visible()
        page.fill("#p-rate", "6.5")
        page.fill("#p-gpus", "1024")
        filled_answers = page.evaluate(answers)
        assert "–" not in filled_answers.values()
        assert re.fullmatch(r"\d+(\.\d+)?%", filled_answers["ettr"])
        box = page.locator("#planner").bounding_box()
        assert box["height"] <= PHONE[1] and box["width"] <= PHONE[0]
        page.wait_for_function("location.hash.includes('rate=6.5')")
        address = page.evaluate("location.hash")
        assert page_faults == []
    with open_page(browser, finished_study.folder / PAGE, anchor=address) as (page, page_faults):
        assert page.evaluate(answers) == filled_answers
        page.click("#planner [type=reset]")
        page.wait_for_function("document.querySelector('#planner output').value === '–'")
        assert page.evaluate(answers) == blank_answers
        assert page_faults == []


@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
def test_every_figure_can_be_explored_and_looks_as_before_after_it(finished_study, browser, size):
    with open_page(browser, finished_study.folder / PAGE, size) as (page, page_faults):
        page.evaluate(acceptance.OPEN_ALL, True)
        buttons = page.locator("[data-do=explore]")
        for index in range(buttons.count()):
            buttons.nth(index).click()
        page.wait_for_function(
            "document.querySelectorAll('.figure.explored .drawing.live svg').length"
            " === document.querySelectorAll('[data-do=explore]').length"
        )
        marks = "[...document.querySelectorAll('.drawing.live svg')].filter((svg) => !svg.querySelector('path, rect'))"
        assert page.evaluate(f"{marks}.length") == 0
        assert page.evaluate("document.documentElement.scrollWidth") <= size[0]
        # Vega warns of channels that a layer's mark does not use.
        assert [fault for fault in page_faults if "WARN" not in fault] == []

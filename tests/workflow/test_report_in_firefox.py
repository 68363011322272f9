"""Pages in the distribution's Firefox have no errors: light, dark and phone."""

import pytest
from firefox import FIREFOX, firefox
from study_runs import PAGE

pytestmark = pytest.mark.skipif(not FIREFOX, reason="firefox-esr is not installed: make test-tools")
MEASURED = """return {
  wide: document.documentElement.scrollWidth - innerWidth, within: innerWidth,
  drawn: [...document.querySelectorAll(".figure")].filter((one) => one.checkVisibility())
    .every((one) => [...one.querySelectorAll(".drawing")]
      .some((drawing) => drawing.getBoundingClientRect().height > 50)),
  numbers: document.querySelectorAll("data[tabindex]").length,
  dark: parseInt(getComputedStyle(document.body).backgroundColor.match(/\\d+/)[0]) < 128,
}"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with firefox(tmp_path_factory.mktemp("firefox") / "profile") as browser:
        yield browser


@pytest.mark.parametrize(("width", "dark"), [(1440, False), (1440, True), (390, False)])
def test_the_page_opens_without_an_error(finished_study, browser, width, dark):
    assert browser.open(finished_study.folder / PAGE, width, dark=dark) == []
    measured = browser.evaluate(MEASURED)
    assert measured["within"] <= width + 20
    assert measured["wide"] <= 0
    assert measured["drawn"] and measured["numbers"] > 20
    assert measured["dark"] == dark


def test_addresses_open_folds_and_figures_can_be_explored(finished_study, browser):
    page = finished_study.folder / PAGE
    assert browser.open(page) == []
    browser.evaluate("location.hash = 'm:outcomes.failure_share'; return new Promise((go) => setTimeout(go, 200));")
    assert browser.evaluate("return document.getElementById('m:outcomes.failure_share').checkVisibility();")
    browser.evaluate("document.querySelector('[data-do=explore]').click();")
    wait_for_drawing = (
        "return new Promise((go) => { const look = () => document.querySelector('.drawing.live svg') ? go(true)"
    )
    assert browser.evaluate(wait_for_drawing + " : setTimeout(look, 50); look(); });")
    assert browser.errors(page) == []


def test_an_error_of_a_script_would_be_seen(finished_study, browser):
    page = finished_study.folder / PAGE
    browser.open(page)
    browser.evaluate(
        "document.body.append(Object.assign(document.createElement('script'), {textContent: 'throw Error(1)'}));"
    )
    assert browser.errors(page) == ["Error: 1"]

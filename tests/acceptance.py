"""What every page holds to, of the report and of the site: measured in Chromium, each fault in words."""

import importlib.util
import json
import math
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import prose
import words_instead
from nouns import CONTRACTS, words_of, wrong_nouns

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
DESK, PHONE, NARROW = (1440, 900), (390, 844), (320, 700)
# At most: screens of a desk and of a phone, words that stand open with the labels of charts, charts open and folded.
BUDGET = {"desk": 10, "phone": 16, "words": 2300, "charts": 12, "folded": 25, "tables": 1}
# What a browser has to build and to run before one can read; what tasks take is measured by `make bench`.
WORK = {"elements": 25_000, "scripts": 1, "script_kb": 60, "megabytes": 2.5}

MEASURED = r"""() => {
  const all = (what) => [...document.querySelectorAll(what)], seen = (node) => node.checkVisibility();
  const words = document.body.innerText.split(/\s+/).filter((word) => /[\p{L}\p{N}]/u.test(word));
  const running = all("script").filter((script) => !script.type || /javascript|module/.test(script.type));
  const rows = all("#all-numbers tbody tr").map((row) =>
    [row.id.slice(2), [row.dataset.v ?? row.cells[1].textContent, row.cells[2].textContent]]);
  const asText = document.body.cloneNode(true);
  for (const node of asText.querySelectorAll("code, bdi")) node.textContent = node.localName === "bdi" ? "name" : "a-b";
  for (const node of asText.querySelectorAll("script, style, pre, svg, button, select, tbody")) node.remove();
  const pieces = "td, th, p, li, dt, dd, summary, h1, h2, h3, h4, div, span, .title, .facts b, .keys b";
  for (const node of asText.querySelectorAll(pieces)) {
    if (node.matches("td, span") || !node.textContent.trim()) node.append(" "); else node.append(" § ");
  }
  const tables = all("table").filter(seen), drawn = all("figure.figure");
  return {
    words: words.length, charts: drawn.filter(seen).length, folded: drawn.filter((chart) => !seen(chart)).length,
    tables: tables.length, strangers: tables.filter((table) => !table.matches(".actions")).length,
    elements: document.querySelectorAll("*").length, scripts: running.length,
    script_kb: running.reduce((sum, script) => sum + script.textContent.length, 0) / 1000,
    numbers: all("data[data-key]").map((number) => [number.dataset.key, number.textContent, !!number.closest("svg")]),
    rows: Object.fromEntries(rows), text: asText.textContent,
    bare: drawn.filter((chart) => !chart.querySelector("svg text, svg path")).map((chart) => chart.id),
    unnamed: all(".drawing svg").filter((svg) => !svg.querySelector("title")?.textContent.trim()).length,
    doubled: Object.entries(Object.groupBy(all("[id]"), (node) => node.id)).filter(([, nodes]) => nodes.length > 1)
      .map(([id]) => id),
  };
}"""
# Every address of the page: what it names can be seen once one has gone there, all folds being closed before.
CLOSED_TO_ADDRESSES = """async () => {
  const links = [...document.querySelectorAll('a[href^="#"]')].map((link) => link.hash);
  const rows = [...document.querySelectorAll("#all-numbers tr[id]")].slice(0, 2).map((row) => "#" + row.id);
  const hashes = [...new Set([...links, ...rows, "#planner"])].filter((hash) => hash.length > 1);
  const shut = [];
  for (const hash of hashes) {
    const place = document.getElementById(decodeURIComponent(hash.slice(1)));
    if (!place) { if (hash !== "#planner") shut.push(hash + " leads nowhere"); continue; }
    for (let fold = place.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = false;
    location.hash = hash;
    for (let wait = 0; wait < 20 && !place.checkVisibility(); wait++) await new Promise((go) => setTimeout(go, 5));
    if (!place.checkVisibility()) shut.push(hash + " stays folded");
  }
  history.replaceState(null, "", location.pathname);
  return shut;
}"""
OPEN_ALL = "(open) => document.querySelectorAll('main details').forEach((fold) => { fold.open = open; })"
# What can differ from row to row is asked of a few rows; a drawing is one picture.
LESS_TO_CHECK = """document.querySelectorAll('main table tbody').forEach((body) =>
    [...body.rows].slice(3).forEach((row) => row.remove()))"""
TOO_WIDE = """() => [...document.querySelectorAll("main *, nav *")].filter((node) => node.checkVisibility()
    && !node.closest(".scroll, .drawing, .unseen, svg") && node.getBoundingClientRect().right > innerWidth + 1)
    .map((node) => node.outerHTML.slice(0, 90)).slice(0, 3)"""
FOCUSED = """() => {
  const at = document.activeElement, box = at.getBoundingClientRect();
  const kind = at.matches(".skip") ? "skip" : at.closest(".contents") ? "contents" : at.closest(".tools") ? "tools"
    : at.closest(".figure") ? "figure" : at.closest(".planner") ? "planner" : at.matches("summary") ? "fold"
    : at.matches("data") ? "number" : at === document.body ? "end" : "other";
  const style = getComputedStyle(at);
  return [kind, at === document.body || (box.width > 0 && style.outlineStyle !== "none")];
}"""
THEMES_BY_CLICKS = """() => {
  const button = [...document.querySelectorAll("[data-do=theme]")].find((one) => one.checkVisibility());
  return [1, 2, 3].map(() => { button.click(); return document.documentElement.dataset.theme ?? "auto"; });
}"""


@contextmanager
def browsing() -> Iterator:
    """Chromium, for all pages of a test."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu", "--disable-quic"]
        )
        yield browser
        browser.close()


@contextmanager
def opened(browser, file: Path, size=DESK, colours="light", at="") -> Iterator:
    """The page without a network: (page, what went wrong); requests, dialogs, warnings and errors are wrong."""
    context = browser.new_context(
        offline=True, viewport=dict(zip(("width", "height"), size, strict=True)), color_scheme=colours
    )
    page, wrong = context.new_page(), []
    page.on("dialog", lambda dialog: wrong.append(f"dialog {dialog.message}") or dialog.dismiss())
    page.on("pageerror", lambda error: wrong.append(f"error {error}"))
    page.on("console", lambda line: line.type in ("error", "warning") and wrong.append(f"console {line.text}"))
    page.on(
        "request",
        lambda request: request.url.startswith(("file:", "data:", "blob:")) or wrong.append(f"request {request.url}"),
    )
    page.goto(file.as_uri() + at)
    yield page, wrong
    context.close()


def violations(page, rules: list[str] | None = None) -> list[str]:
    """What axe-core finds against the accessibility of the page, which loses rows by it."""
    package = Path(importlib.util.find_spec("axe_playwright_python").origin).parent
    page.evaluate((package / "axe.min.js").read_text(encoding="utf-8"))
    page.evaluate(LESS_TO_CHECK)
    options = {"resultTypes": ["violations"]} | ({"runOnly": rules} if rules else {})
    found = page.evaluate("options => axe.run(document, options)", options)["violations"]
    return [f"axe {found['id']}: {node['html'][:160]}" for found in found for node in found["nodes"]]


_SIZES = {
    "share": (1, 100),
    "s": (1, 1 / 60, 1 / 3600, 1 / 86_400, 1 / 31_557_600),
}
_OTHER_SIZES = (1, 1e-3, 1e-6, 1e-9)


def says(shown: str, value: float, unit: str) -> bool:
    """Whether the first number in the words is the value to the digits it is shown with; words without one may be."""
    plain = shown.replace("\u00a0", " ").replace("−", "-").replace(",", "")
    found = re.search(r"-?\d+(\.\d+)?", plain)
    if not found or "×" in plain or plain.startswith(("<", ">", "less than", "more than")):
        return True
    told = float(found[0])
    digits = len(found[1]) - 1 if found[1] else 0
    # Of a large whole number three digits are told.
    off = 0.5 * 10**-digits
    if not digits and abs(told) >= 1000 and found[0].endswith("0"):
        off = max(off, 0.5 * 10 ** (math.floor(math.log10(abs(told))) - 2))
    sizes = (100,) if "%" in plain and unit == "share" else _SIZES.get(unit, _OTHER_SIZES)
    # Without a sign where the words say the direction.
    return any(abs(abs(value) * size - abs(told)) <= off * 1.000001 for size in sizes)


def cut(shown: str, text: str) -> bool:
    """Whether a text is shown, its spaces aside, to its end or to where it is cut."""
    shown, text = (" ".join(one.split()) for one in (shown, text))
    return shown == text or (shown.endswith("…") and text.startswith(shown[:-1]))


def wrong_numbers(seen: dict, metrics: dict, withheld: dict) -> list[str]:
    """Handles and rows that are not what metrics.json says, or are withheld."""
    faults = []
    rows = seen["rows"]
    known = {key: about for key, about in metrics.items() if about["value"] is not None and key not in withheld}
    faults += [f"row {key} is missing" for key in known.keys() - rows.keys()]
    faults += [f"row {key} is not in metrics.json" for key in rows.keys() - metrics.keys()]
    faults += [f"withheld {key} has a row" for key in rows.keys() & withheld.keys()]
    for key, (exact, unit) in rows.items():
        about = metrics.get(key, {"value": None, "unit": ""})
        value = about["value"]
        if " ".join(unit.split()) != about["unit"] or (
            not cut(exact, value)
            if isinstance(value, str)
            else isinstance(value, int | float) and exact not in (repr(value), f"{value:,}", "–")
        ):
            faults.append(f"row {key} has {exact!r} {unit!r}, metrics.json {value!r} {about['unit']!r}")
    for key, shown, _ in seen["numbers"]:
        about = metrics.get(key)
        if about is None or about["value"] is None:
            faults.append(f"handle {key} of no number")
        elif key in withheld:
            faults.append(f"handle {key} is withheld")
        elif isinstance(about["value"], int | float) and not says(shown, about["value"], about["unit"]):
            faults.append(f"handle {key} says {shown!r}, metrics.json {about['value']!r} {about['unit']}")
    return faults


def chart_numbers(trace: Path) -> list[tuple[str, str, str]]:
    """(key, text, chart) of each text of a chart that is a number of metrics.json, as its row says."""
    rows = [
        (row, chart)
        for chart in sorted((trace / "figures").glob("*.vl.json"))
        for dataset in json.loads(chart.read_text(encoding="utf-8")).get("datasets", {}).values()
        for row in dataset
    ]
    return [
        (row["key"], row.get("label", row.get("text")), chart.name.removesuffix(".vl.json"))
        for row, chart in rows
        if "key" in row
    ]


def wrong_in_charts(numbers: list[tuple[str, str, str]], metrics: dict, withheld: dict) -> list[str]:
    """Texts of charts that are not what metrics.json says, or are withheld."""
    faults = [f"chart {chart} says {text!r}: {key} is withheld" for key, text, chart in numbers if key in withheld]
    for key, text, chart in numbers:
        value = metrics.get(key, {"value": None})["value"]
        if value is not None and not says(text, value, metrics[key]["unit"]):
            faults.append(f"chart {chart} says {text!r}, metrics.json {key} {value!r}")
    return faults


def pages_of_brief(page) -> int:
    """Of how many printed pages header, tiles and actions are, in Chromium's PDF, nothing else being there."""
    hidden = page.add_style_tag(content="main > :not(#overview, #actions) { display: none !important }")
    pdf = page.pdf(format="A4", prefer_css_page_size=True)
    hidden.evaluate("style => style.remove()")
    return len(re.findall(rb"/Type\s*/Page\b(?!s)", pdf))


def tab_stops(page, most: int = 1500) -> tuple[list[str], list[str]]:
    """What the Tab key reaches from here to the end of the page: the kind of each stop, and faults of the way."""
    kinds, faults = [], []
    for _ in range(most):
        page.keyboard.press("Tab")
        kind, outlined = page.evaluate(FOCUSED)
        if kind == "end":
            return kinds, faults
        kinds.append(kind)
        if not outlined:
            faults.append(f"focus unseen: {page.evaluate('document.activeElement.outerHTML.slice(0, 100)')}")
    return kinds, [*faults, "the focus never leaves the page"]


def _faults_of_buttons(page) -> list[str]:
    """What the theme and the BibTeX of any page do not do."""
    themes = page.evaluate(THEMES_BY_CLICKS)
    with page.expect_download(timeout=5_000) as download:
        page.locator("[data-do=bibtex]").click()
    bibtex = Path(download.value.path()).read_text(encoding="utf-8")
    faults = [] if themes == ["light", "dark", "auto"] else [f"themes by clicks: {themes}"]
    return faults + ([] if bibtex.startswith("@misc{") else [f"BibTeX: {bibtex[:80]!r}"])


def _faults_of_any_page(page, seen: dict, axe: bool) -> list[str]:
    """What is wrong whatever the page says: ids, words, addresses, buttons, widths, accessibility. It loses rows."""
    found = [f"id {name} twice" for name in seen["doubled"]]
    for piece in seen["text"].split("§"):
        found += words_instead.slips(" ".join(piece.split())) + prose.slips(piece)
    found += page.evaluate(CLOSED_TO_ADDRESSES) + _faults_of_buttons(page)
    page.set_viewport_size({"width": NARROW[0], "height": NARROW[1]})
    for opening in (False, True):
        page.evaluate(OPEN_ALL, opening)
        if page.evaluate("document.documentElement.scrollWidth") > NARROW[0]:
            found += [f"wider than 320 px: {node}" for node in page.evaluate(TOO_WIDE)] or ["wider than 320 px"]
    page.set_viewport_size({"width": DESK[0], "height": DESK[1]})
    if axe:
        found += violations(page)
        page.emulate_media(color_scheme="dark")
        found += [f"dark: {what}" for what in violations(page, ["color-contrast"])]
    return found


def faults_of_other_page(browser, file: Path) -> list[str]:
    """What of a page that is of no trace is not as it should be: the comparison, and those that the site adds."""
    with opened(browser, file) as (page, found):
        kinds, of_keyboard = tab_stops(page)
        found += of_keyboard + ([] if kinds[:1] == ["skip"] else [f"the first stop is {kinds[:1]}"])
        found += _faults_of_any_page(page, page.evaluate(MEASURED), axe=True)
        return list(dict.fromkeys(found))


def faults(browser, file: Path, trace: Path, axe: bool = True) -> list[str]:
    """What of the page of a trace is not as it should be; trace: results/<trace>. axe: whether axe-core is asked."""
    metrics = json.loads((trace / "metrics.json").read_text(encoding="utf-8"))
    brief = json.loads((trace / "brief.json").read_text(encoding="utf-8"))
    with opened(browser, file) as (page, found):
        seen = page.evaluate(MEASURED)
        height = "document.documentElement.scrollHeight / innerHeight"
        lengths = {"desk": page.evaluate(height)} | seen
        page.set_viewport_size({"width": PHONE[0], "height": PHONE[1]})
        lengths["phone"] = page.evaluate(height)
        if planner := page.query_selector("#planner"):
            tall = planner.bounding_box()["height"]
            found += [f"the planner is {tall:.0f} px high on a phone"] if tall > PHONE[1] else []
        lengths["megabytes"] = file.stat().st_size / 1e6
        most = BUDGET | WORK
        found += [f"{what}: {lengths[what]:.1f} > {most[what]}" for what in most if lengths[what] > most[what]]
        found += ["an open table besides the actions"] if seen["strangers"] else []
        found += [f"empty chart {name}" for name in seen["bare"]]
        found += ["drawings without a title"] if seen["unnamed"] else []
        found += wrong_numbers(seen, metrics, brief["withheld"])
        found += wrong_in_charts(chart_numbers(trace), metrics, brief["withheld"])
        if (about := words_of(trace.name)) is not None:
            found += wrong_nouns(file.read_text(encoding="utf-8"), metrics, CONTRACTS, about)
        if brief["withheld"] and planner:
            answers = page.evaluate(
                "[...document.querySelectorAll('#planner .answers output')].map((one) => one.value)"
            )
            told = page.evaluate("document.querySelector('#planner .why')?.innerText")
            rate = page.evaluate("document.querySelector('#p-rate').value")
            component = "data.jobs" not in metrics and metrics.get("sizes.rate.failures_per_1000_node_days")
            if component and component["value"]:
                wrong = not says(rate, component["value"], "") or "–" in answers
            else:
                wrong = rate != "" or set(answers) != {"–"} or not told
            found += [f"planner: {rate=} {answers=} {told=}"] if wrong else []
        page.set_viewport_size({"width": DESK[0], "height": DESK[1]})
        pages = pages_of_brief(page)
        found += [f"the brief is of {pages} printed pages"] if pages != 1 else []
        found += _faults_of_any_page(page, seen, axe)
        return list(dict.fromkeys(found))

"""Requirements of every page of the report and the site, measured in Chromium; each fault is a sentence."""

import importlib.util
import json
import math
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import prose_checks
from noun_checks import CONTRACTS, load_trace_words, wrong_nouns

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
DESK, PHONE, NARROW = (1440, 900), (390, 844), (320, 700)
# Limits: screens on desktop and phone, visible words with chart labels, visible and folded charts.
BUDGET = {"desk": 10, "phone": 16, "words": 2300, "charts": 12, "folded": 25, "tables": 1}
# Limits of what a browser builds and runs before the page is readable; `make bench` measures times.
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
# For every anchor of the page: following it makes its target visible, even if all folds were closed.
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
# axe-core checks a few rows of each table; further rows have the same markup.
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
    """Yield a Chromium browser for all pages of a test."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu", "--disable-quic"]
        )
        yield browser
        browser.close()


@contextmanager
def open_page(browser, file: Path, size=DESK, colours="light", anchor="") -> Iterator:
    """Open the page offline; yield (page, faults), where requests, dialogs, warnings and errors are faults."""
    context = browser.new_context(
        offline=True, viewport=dict(zip(("width", "height"), size, strict=True)), color_scheme=colours
    )
    page, faults = context.new_page(), []
    page.on("dialog", lambda dialog: faults.append(f"dialog {dialog.message}") or dialog.dismiss())
    page.on("pageerror", lambda error: faults.append(f"error {error}"))
    page.on("console", lambda line: line.type in ("error", "warning") and faults.append(f"console {line.text}"))
    page.on(
        "request",
        lambda request: request.url.startswith(("file:", "data:", "blob:")) or faults.append(f"request {request.url}"),
    )
    page.goto(file.as_uri() + anchor)
    yield page, faults
    context.close()


def violations(page, rules: list[str] | None = None) -> list[str]:
    """Return the accessibility violations that axe-core finds; removes most table rows of the page."""
    package = Path(importlib.util.find_spec("axe_playwright_python").origin).parent
    page.evaluate((package / "axe.min.js").read_text(encoding="utf-8"))
    page.evaluate(LESS_TO_CHECK)
    options = {"resultTypes": ["violations"]} | ({"runOnly": rules} if rules else {})
    violation = page.evaluate("options => axe.run(document, options)", options)["violations"]
    return [f"axe {violation['id']}: {node['html'][:160]}" for violation in violation for node in violation["nodes"]]


_SIZES = {"share": (1, 100), "s": (1, 1 / 60, 1 / 3600, 1 / 86_400, 1 / 31_557_600)}
_OTHER_SIZES = (1, 1e-3, 1e-6, 1e-9)


def shows_value(shown: str, value: float, unit: str) -> bool:
    """Return whether the first number in the text is the rounded value; a text without a number passes."""
    plain = shown.replace("\u00a0", " ").replace("−", "-").replace(",", "")
    match = re.search(r"-?\d+(\.\d+)?", plain)
    if not match or "×" in plain or plain.startswith(("<", ">", "less than", "more than")):
        return True
    shown_value = float(match[0])
    digits = len(match[1]) - 1 if match[1] else 0
    # Large whole numbers are shown to three digits.
    tolerance = 0.5 * 10**-digits
    if not digits and abs(shown_value) >= 1000 and match[0].endswith("0"):
        tolerance = max(tolerance, 0.5 * 10 ** (math.floor(math.log10(abs(shown_value))) - 2))
    sizes = (100,) if "%" in plain and unit == "share" else _SIZES.get(unit, _OTHER_SIZES)
    # The text may express the sign in words.
    return any(abs(abs(value) * size - abs(shown_value)) <= tolerance * 1.000001 for size in sizes)


def is_truncation(shown: str, text: str) -> bool:
    """Return whether `shown` is the text, whole or truncated, up to spaces."""
    shown, text = (" ".join(part.split()) for part in (shown, text))
    return shown == text or (shown.endswith("…") and text.startswith(shown[:-1]))


def wrong_numbers(measured: dict, metrics: dict, withheld: dict) -> list[str]:
    """List number elements and table rows that contradict metrics.json or are withheld."""
    faults = []
    rows = measured["rows"]
    expected_keys = {key for key, metric in metrics.items() if metric["value"] is not None} - withheld.keys()
    faults += [f"row {key} is missing" for key in expected_keys - rows.keys()]
    faults += [f"row {key} is not in metrics.json" for key in rows.keys() - metrics.keys()]
    faults += [f"withheld {key} has a row" for key in rows.keys() & withheld.keys()]
    for key, (exact, unit) in rows.items():
        metric = metrics.get(key, {"value": None, "unit": ""})
        value = metric["value"]
        if " ".join(unit.split()) != metric["unit"] or (
            not is_truncation(exact, value)
            if isinstance(value, str)
            else isinstance(value, int | float) and exact not in (repr(value), f"{value:,}", "–")
        ):
            faults.append(f"row {key} has {exact!r} {unit!r}, metrics.json {value!r} {metric['unit']!r}")
    for key, shown, _ in measured["numbers"]:
        metric = metrics.get(key)
        if metric is None or metric["value"] is None:
            faults.append(f"handle {key} of no number")
        elif key in withheld:
            faults.append(f"handle {key} is withheld")
        elif isinstance(metric["value"], int | float) and not shows_value(shown, metric["value"], metric["unit"]):
            faults.append(f"handle {key} says {shown!r}, metrics.json {metric['value']!r} {metric['unit']}")
    return faults


def chart_numbers(trace: Path) -> list[tuple[str, str, str]]:
    """Return (key, text, chart) for each chart text whose row names a key of metrics.json."""
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
    """List chart texts that contradict metrics.json or are withheld."""
    faults = [f"chart {chart} says {text!r}: {key} is withheld" for key, text, chart in numbers if key in withheld]
    for key, text, chart in numbers:
        value = metrics.get(key, {"value": None})["value"]
        if value is not None and not shows_value(text, value, metrics[key]["unit"]):
            faults.append(f"chart {chart} says {text!r}, metrics.json {key} {value!r}")
    return faults


def pages_of_brief(page) -> int:
    """Return the number of PDF pages that header, tiles and actions alone fill."""
    hidden = page.add_style_tag(content="main > :not(#overview, #actions) { display: none !important }")
    pdf = page.pdf(format="A4", prefer_css_page_size=True)
    hidden.evaluate("style => style.remove()")
    return len(re.findall(rb"/Type\s*/Page\b(?!s)", pdf))


def tab_stops(page, most: int = 1500) -> tuple[list[str], list[str]]:
    """Press Tab to the end of the page; return the kind of each stop, and the faults."""
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
    themes = page.evaluate(THEMES_BY_CLICKS)
    with page.expect_download(timeout=5_000) as download:
        page.locator("[data-do=bibtex]").click()
    bibtex = Path(download.value.path()).read_text(encoding="utf-8")
    faults = [] if themes == ["light", "dark", "auto"] else [f"themes by clicks: {themes}"]
    return faults + ([] if bibtex.startswith("@misc{") else [f"BibTeX: {bibtex[:80]!r}"])


def _faults_of_any_page(page, measured: dict, axe: bool) -> list[str]:
    """List faults of ids, words, anchors, buttons, widths and accessibility; removes table rows of the page."""
    faults = [f"id {name} twice" for name in measured["doubled"]]
    for piece in measured["text"].split("§"):
        faults += prose_checks.find_slips(piece)
    faults += page.evaluate(CLOSED_TO_ADDRESSES) + _faults_of_buttons(page)
    page.set_viewport_size({"width": NARROW[0], "height": NARROW[1]})
    for opening in (False, True):
        page.evaluate(OPEN_ALL, opening)
        if page.evaluate("document.documentElement.scrollWidth") > NARROW[0]:
            faults += [f"wider than 320 px: {node}" for node in page.evaluate(TOO_WIDE)] or ["wider than 320 px"]
    page.set_viewport_size({"width": DESK[0], "height": DESK[1]})
    if axe:
        faults += violations(page)
        page.emulate_media(color_scheme="dark")
        faults += [f"dark: {violation}" for violation in violations(page, ["color-contrast"])]
    return faults


def faults_of_other_page(browser, file: Path) -> list[str]:
    with open_page(browser, file) as (page, faults):
        kinds, keyboard_faults = tab_stops(page)
        faults += keyboard_faults + ([] if kinds[:1] == ["skip"] else [f"the first stop is {kinds[:1]}"])
        faults += _faults_of_any_page(page, page.evaluate(MEASURED), axe=True)
        return list(dict.fromkeys(faults))


def faults(browser, file: Path, trace: Path, axe: bool = True) -> list[str]:
    """List the faults of the page of a trace; trace: results/<trace>; axe: whether axe-core runs."""
    metrics = json.loads((trace / "metrics.json").read_text(encoding="utf-8"))
    brief = json.loads((trace / "brief.json").read_text(encoding="utf-8"))
    with open_page(browser, file) as (page, page_faults):
        measured = page.evaluate(MEASURED)
        height = "document.documentElement.scrollHeight / innerHeight"
        lengths = {"desk": page.evaluate(height)} | measured
        page.set_viewport_size({"width": PHONE[0], "height": PHONE[1]})
        lengths["phone"] = page.evaluate(height)
        if planner := page.query_selector("#planner"):
            tall = planner.bounding_box()["height"]
            page_faults += [f"the planner is {tall:.0f} px high on a phone"] if tall > PHONE[1] else []
        lengths["megabytes"] = file.stat().st_size / 1e6
        most = BUDGET | WORK
        page_faults += [
            f"{measure}: {lengths[measure]:.1f} > {most[measure]}"
            for measure in most
            if lengths[measure] > most[measure]
        ]
        page_faults += ["an open table besides the actions"] if measured["strangers"] else []
        page_faults += [f"empty chart {name}" for name in measured["bare"]]
        page_faults += ["drawings without a title"] if measured["unnamed"] else []
        page_faults += wrong_numbers(measured, metrics, brief["withheld"])
        page_faults += wrong_in_charts(chart_numbers(trace), metrics, brief["withheld"])
        if (trace_words := load_trace_words(trace.name)) is not None:
            page_faults += wrong_nouns(file.read_text(encoding="utf-8"), metrics, CONTRACTS, trace_words)
        if brief["withheld"] and planner:
            answers = page.evaluate(
                "[...document.querySelectorAll('#planner .answers output')].map((one) => one.value)"
            )
            explanation = page.evaluate("document.querySelector('#planner .why')?.innerText")
            rate = page.evaluate("document.querySelector('#p-rate').value")
            component = "data.jobs" not in metrics and metrics.get("sizes.rate.failures_per_1000_node_days")
            if component and component["value"]:
                wrong = not shows_value(rate, component["value"], "") or "–" in answers
            else:
                wrong = rate != "" or set(answers) != {"–"} or not explanation
            page_faults += [f"planner: {rate=} {answers=} {explanation=}"] if wrong else []
        page.set_viewport_size({"width": DESK[0], "height": DESK[1]})
        pages = pages_of_brief(page)
        page_faults += [f"the brief is of {pages} printed pages"] if pages != 1 else []
        page_faults += _faults_of_any_page(page, measured, axe)
        return list(dict.fromkeys(page_faults))

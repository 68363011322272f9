"""Numbers and raw values as a person reads them, and made safe for Markdown and HTML."""

import html
import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Sequence

NO_BREAK = "\u00a0"  # between a number and its unit
_NOT_PLAIN = re.compile(r"[^A-Za-z0-9 ]")
LONGEST_LABEL = 60
_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
# A space that stands before or after a relation (n = 5, p < 0.01) or before the unit of a number.
_UNBROKEN = re.compile(
    r"(?<=\b[nrp]) (?=[=<>] )|(?<=[ρ²]) (?=[=<>] )|(?<=[=<>]) (?=[−-]?\d)"
    r"|(?<=\d) (?=(?:%|s|min|h|d|days?|years?|GiB|GPUs?)(?!\w))"
)


def shorten(text: str, most: int = LONGEST_LABEL) -> str:
    """A raw value cut to a length that fits a line."""
    return text if len(text) <= most else text[: most - 1] + "…"


def markdown(text: object) -> str:
    """Any text as literal Markdown: whatever could mean something to Markdown, Quarto or HTML is a character reference.

    Line breaks become spaces, so that the text cannot leave its paragraph; some spaces become unbroken ones.
    """
    flat = unbroken(" ".join(re.split(r"[ \t\r\n\f\v]+", str(text))).strip())
    return _NOT_PLAIN.sub(lambda match: f"&#{ord(match[0])};", flat)


def label(text: object) -> str:
    """A raw value from a trace, shortened, as literal Markdown."""
    return markdown(shorten(str(text)))


def attribute(text: object) -> str:
    """Any text as the content of an HTML element or a quoted attribute."""
    return html.escape(" ".join(str(text).split()), quote=True).replace("{", "&#123;").replace("`", "&#96;")


def typst_string(text: object) -> str:
    """Any text as a string of Typst, quotes included; all that could mean something to it or to Quarto is escaped."""
    flat = " ".join(str(text).split())
    return '"' + re.sub(r"[^A-Za-z0-9 ,.;:%()=_/-]", lambda match: f"\\u{{{ord(match[0]):x}}}", flat) + '"'


def typst_strings(texts: list) -> str:
    """Texts as an array of Typst."""
    return "(" + "".join(f"{typst_string(text)}, " for text in texts) + ")"


def count(value: float) -> str:
    """A count with thousands separated: 1,261,050."""
    return f"{value:,.0f}".replace("-", "−")


def grouped(text: str) -> str:
    """A number in a text with its thousands separated, any other text as it is: 51,200; V100."""
    return f"{int(text):,}" if re.fullmatch(r"\d+", text, re.ASCII) else text


def unbroken(text: str) -> str:
    """Text in which no line ends between a sign of equality and a number, or between a number and its unit."""
    return _UNBROKEN.sub(NO_BREAK, text)


def plain_spaces(text: str) -> str:
    """A text for a file: lines may break at all of its spaces."""
    return text.replace(NO_BREAK, " ")


def number(value: float, digits: int = 3) -> str:
    """A number to so many significant digits, never in powers of ten between 0.0001 and a billion: 0.0123, 12,300.

    A count of fewer digits has no decimals.
    """
    if value == 0 or (isinstance(value, int) and abs(value) < 10**digits):
        return count(value)
    if not 1e-4 <= abs(value) < 1e9:
        mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
        return f"{mantissa.replace('-', '−')} × 10{str(int(exponent)).translate(_SUPERSCRIPT)}"
    rounded = float(f"{value:.{digits}g}")
    # The power of ten of the first digit gives how many decimals leave `digits` significant ones.
    decimals = max(digits - 1 - math.floor(math.log10(abs(rounded))), 0)
    return f"{rounded:,.{decimals}f}".replace("-", "−")


def near_one(share: float) -> str:
    """A share in per cent, of which what lacks to all has two significant digits: 97.7%, 99.88%, 99.965%."""
    lacks = 100 * (1 - share)
    return f"{100 * share:.{max(1, 1 + math.ceil(-math.log10(lacks))) if lacks > 0 else 0}f}%"


def near_zero(share: float) -> str:
    """A share in per cent to two significant digits: 0.35%."""
    return f"{number(100 * share, 2)}%"


def share(value: float) -> str:
    """A share in per cent: 22.9%. Below a tenth of a per cent, two significant digits, but not below 0.001%.

    What is not quite nothing or everything never reads 0.0% or 100.0%.
    """
    percent = 100 * value
    if 0 < percent < 0.001:
        return "<0.001%"
    if 0 < abs(percent) < 0.1:
        return f"{number(percent, 2) if abs(percent) >= 0.001 else '0.0'}%"
    return ">99.9%" if 99.95 <= percent < 100 else f"{percent:.1f}%".replace("-", "−")


def part(value: float) -> str:
    """A share of things in a sentence: none, all, 22.9%."""
    return "none" if value == 0 else "all" if value == 1 else share(value)


# Unit -> seconds in one.
SECONDS = {"s": 1, "min": 60, "h": 3_600, "days": 86_400, "years": 31_557_600}


def duration(seconds: float) -> str:
    """A time in the largest unit of which there is at least one: 38 s, 3.65 min, 31.2 h, 12.4 days, 3.1 years.

    Hours go to two days, days to two years, so that neighbouring values in a table mostly share a unit.
    """
    for unit, until in (("s", 60), ("min", 3_600), ("h", 172_800), ("days", 63_115_200)):
        if abs(seconds) < until:
            return in_unit(unit)(seconds)
    return in_unit("years")(seconds)


def wait(seconds: float) -> str:
    """How long a share of the jobs waited, after the verb: not at all, at most 3.65 min."""
    return "not at all" if seconds == 0 else f"at most {duration(seconds)}"


def in_unit(unit: str) -> Callable[[float], str]:
    """The words of times in one unit; whole ones, such as limits, without decimals: 1 h."""

    def worded(seconds: float) -> str:
        whole, rest = divmod(seconds, SECONDS[unit])
        return f"{number(seconds / SECONDS[unit] if rest else int(whole))}{NO_BREAK}{unit}"

    return worded


def alike(like: float, *times_s: float) -> list[str]:
    """Times in the unit of the time `like`; each in its own where one of them reads badly in that."""
    size = SECONDS[unit := duration(like).rpartition(NO_BREAK)[2]]
    fits = all(seconds == 0 or 0.01 * size <= abs(seconds) < 10_000 * size for seconds in times_s)
    return [(in_unit(unit) if fits else duration)(seconds) for seconds in times_s]


def until(low: float, high: float, like: float | None = None) -> str:
    """From a time to another, in the unit of the estimate `like` that they lie about: 40.2–48.1 h."""
    return span(*alike(low if like is None else like, low, high))


def span(low: str, high: str) -> str:
    """From one to the other, their unit once where it is the same: 31.4–32.3%, 40.2–48.1 h, 40 min–3 h, −2 to 5."""
    for unit in (low.partition(NO_BREAK)[1:], ("", "%")):
        end = "".join(unit)
        if end and low.endswith(end) and high.endswith(end):
            low = low.removesuffix(end)
            break
    return f"{low} to {high}" if "−" in low + high else f"{low}–{high}"


def unit_of(times_s: list[float]) -> str | None:
    """The unit in which all these times read well, from 0.1 to 10,000; None where there is none, or no time."""
    sizes = [abs(seconds) for seconds in times_s if seconds]
    if not sizes:
        return None
    worded = Counter(duration(seconds).partition(NO_BREAK)[2] for seconds in sizes)
    fitting = [unit for unit, size in SECONDS.items() if min(sizes) >= 0.1 * size and max(sizes) < 10_000 * size]
    return max(fitting, key=lambda unit: worded[unit], default=None)


def interval(value: str | None, low: str | None, high: str | None) -> str | None:
    """An estimate with its interval: 12.3 h (10.1–14.9); ≥ 10.1 h, if only that is known; or None."""
    if value is None:
        return None if low is None else f"≥{NO_BREAK}{low}"
    if low is None and high is None:
        return value
    if low is None or high is None:
        return f"{value} (up to {high})" if low is None else f"{value} (from {low})"
    ends = span(low, high)
    units = {text.partition(NO_BREAK)[2] for text in (value, low, high)}
    return f"{value} ({ends.partition(NO_BREAK)[0] if len(units) == 1 else ends})"


def p_value(value: float) -> str:
    """A p-value with its relation: = 0.012, < 0.0001."""
    return "< 0.0001" if value < 1e-4 else f"= {number(value, 2)}"


def plain_p_value(value: float) -> str:
    """A p-value under a heading that says so: 0.012, < 0.0001."""
    return p_value(value).removeprefix("= ")


def coefficient(value: float) -> str:
    """A correlation to two digits, with a minus sign."""
    return _fixed(value, 2)


def points(share: float) -> str:
    """A difference of shares in percentage points: −1.2."""
    return _fixed(100 * share, 1)


def _fixed(value: float, decimals: int) -> str:
    # Adding 0 makes minus nothing plain nothing.
    return f"{round(value, decimals) + 0:.{decimals}f}".replace("-", "−")


def article(said: str) -> str:
    """Before a number in figures: a, but an before 8, 11 and 18."""
    return "an" if re.match(r"8|1[18]\b", said) else "a"


def plural(value: float, one: str) -> str:
    """A count with its noun: 1 failure, 2 failures."""
    return f"{count(value)} {one if value == 1 else many(one)}"


def many(noun: str) -> str:
    """With -s, but for those in -y after a consonant (histories, but delays) and strata: gaps between outages."""
    if noun == "stratum":
        return "strata"
    head, of, rest = next((noun.partition(word) for word in (" at ", " between ") if word in noun), (noun, "", ""))
    if of:
        return f"{many(head)}{of}{rest}"
    return f"{noun[:-1]}ies" if noun.endswith("y") and noun[-2] not in "aeo" else f"{noun}s"


def capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def listed(parts: Sequence[str]) -> str:
    """a; a and b; a, b and c."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def gpu_hours(hours: float) -> str:
    """1 GPU-hour, 12.3 GPU-hours."""
    return "1 GPU-hour" if hours == 1 else f"{number(hours)} GPU-hours"


def gpus_label(low: int, high: int) -> str:
    """A bucket of numbers of GPUs: 1; 3–4; 1,025–2,048."""
    return f"{high:,}" if low == high else f"{low:,}–{high:,}"


def in_words(stratum_by: str) -> str:
    """What divides lives into strata, in a sentence; a trace's own strata are words already."""
    return {"gpu_type": "GPU type", "gpu_count": "number of GPUs", "gpus": "number of GPUs"}.get(
        stratum_by, stratum_by.replace("_", " ")
    )


def clustering(names: Collection[str]) -> str:
    """What intervals are clustered by, in words, and whether they allow for weeks; names: as in cluster_by."""
    units, blocks = (sorted({name.partition(" and ")[part] for name in names}) for part in (0, 2))
    text = " or ".join(units)
    if blocks == [""]:
        return f"{text}, weeks not allowed for"
    return f"{text} and {blocks[-1]}" if "" not in blocks else f"{text}, and {blocks[-1]} where enough are seen"

"""Format numbers and raw values for readers, and escape them for Markdown and HTML."""

import html
import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from decimal import Decimal

NO_BREAK = "\u00a0"  # between a number and its unit
_SPECIAL = re.compile(r"[^A-Za-z0-9 ]")
LONGEST_LABEL = 60
_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
# A space next to a relation (n = 5, p < 0.01) or before the unit of a number.
_JOINED_SPACE = re.compile(
    r"(?<=\b[nrp]) (?=[=<>] )|(?<=[ρ²]) (?=[=<>] )|(?<=[=<>]) (?=[−-]?\d)"
    r"|(?<=\d) (?=(?:%|s|min|h|d|days?|years?|GiB|GPUs?)(?!\w))"
)


def shorten(text: str, max_length: int = LONGEST_LABEL) -> str:
    """Cut a raw value to at most `max_length` characters."""
    return text if len(text) <= max_length else text[: max_length - 1] + "…"


def markdown(text: object) -> str:
    """Return a text as literal Markdown: all special characters become character references.

    Line breaks become spaces, so that the text stays in its paragraph; some spaces become no-break spaces.
    """
    flat = add_no_break_spaces(" ".join(re.split(r"[ \t\r\n\f\v]+", str(text))).strip())
    return _SPECIAL.sub(lambda match: f"&#{ord(match[0])};", flat)


def label(text: object) -> str:
    """Return a raw value of a trace, shortened, as literal Markdown."""
    return markdown(shorten(str(text)))


def attribute(text: object) -> str:
    """Escape a text for an HTML element or a quoted attribute."""
    return html.escape(" ".join(str(text).split()), quote=True).replace("{", "&#123;").replace("`", "&#96;")


def escape_unprintable(text: str) -> str:
    """Return the text with control and direction characters as their codes, so that different texts stay different."""
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape", "surrogatepass").decode() for letter in text
    )


def typst_string(text: object) -> str:
    """Return a text as a quoted Typst string with all special characters escaped."""
    flat = " ".join(str(text).split())
    return '"' + re.sub(r"[^A-Za-z0-9 ,.;:%()=_/-]", lambda match: f"\\u{{{ord(match[0]):x}}}", flat) + '"'


def typst_strings(texts: list) -> str:
    """Return texts as a Typst array."""
    return "(" + "".join(f"{typst_string(text)}, " for text in texts) + ")"


def count(value: float | Decimal) -> str:
    """Format a count with thousands separators: 1,261,050."""
    return f"{value:,.0f}".replace("-", "−")


def group_thousands(text: str) -> str:
    """Add thousands separators to a text of digits; return other texts unchanged: 51,200; V100."""
    return f"{int(text):,}" if re.fullmatch(r"\d+", text, re.ASCII) else text


def add_no_break_spaces(text: str) -> str:
    """Put no-break spaces between relations, numbers and units."""
    return _JOINED_SPACE.sub(NO_BREAK, text)


def remove_no_break_spaces(text: str) -> str:
    """Replace no-break spaces by plain ones, for text in files."""
    return text.replace(NO_BREAK, " ")


def number(value: float, digits: int = 3) -> str:
    """Format a number to `digits` significant digits, without powers of ten from 0.0001 to a billion: 0.0123, 12,300.

    Integers with fewer digits have no decimals.
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
    """Format a share near 1 in per cent, with two significant digits of 1 - share: 97.7%, 99.88%, 99.965%."""
    rest_percent = 100 * (1 - share)
    return f"{100 * share:.{max(1, 1 + math.ceil(-math.log10(rest_percent))) if rest_percent > 0 else 0}f}%"


def near_zero(share: float) -> str:
    """Format a share in per cent to two significant digits: 0.35%."""
    return f"{number(100 * share, 2)}%"


def share(value: float) -> str:
    """Format a share in per cent: 22.9%; below 0.1% with two significant digits, at least 0.001%.

    Only exact zeros and ones read 0.0% and 100.0%.
    """
    percent = 100 * value
    if 0 < percent < 0.001:
        return "<0.001%"
    if 0 < abs(percent) < 0.1:
        return f"{number(percent, 2) if abs(percent) >= 0.001 else '0.0'}%"
    return ">99.9%" if 99.95 <= percent < 100 else f"{percent:.1f}%".replace("-", "−")


def part(value: float) -> str:
    """Format a share for use within a sentence: none, all or 22.9%."""
    return "none" if value == 0 else "all" if value == 1 else share(value)


# Unit -> seconds in one.
SECONDS = {"s": 1, "min": 60, "h": 3_600, "days": 86_400, "years": 31_557_600}


def duration(seconds: float) -> str:
    """Format a time in the largest fitting unit: 38 s, 3.65 min, 31.2 h, 12.4 days, 3.1 years.

    Hours extend to two days and days to two years, so that values in a table mostly share a unit.
    """
    for unit, limit in (("s", 60), ("min", 3_600), ("h", 172_800), ("days", 63_115_200)):
        if abs(seconds) < limit:
            return make_unit_formatter(unit)(seconds)
    return make_unit_formatter("years")(seconds)


def wait(seconds: float) -> str:
    """Return the complement of "waited": not at all, at most 3.65 min."""
    return "not at all" if seconds == 0 else f"at most {duration(seconds)}"


def make_unit_formatter(unit: str) -> Callable[[float], str]:
    """Return a formatter of times in one unit; whole values, such as limits, have no decimals: 1 h."""

    def format_seconds(seconds: float) -> str:
        whole, rest = divmod(seconds, SECONDS[unit])
        return f"{number(seconds / SECONDS[unit] if rest else int(whole))}{NO_BREAK}{unit}"

    return format_seconds


def in_common_unit(reference_s: float, *times_s: float) -> list[str]:
    """Format times in the unit of `reference_s`, or each in its own unit if one would be unreadable."""
    size = SECONDS[unit := duration(reference_s).rpartition(NO_BREAK)[2]]
    is_readable = all(seconds == 0 or 0.01 * size <= abs(seconds) < 10_000 * size for seconds in times_s)
    return [(make_unit_formatter(unit) if is_readable else duration)(seconds) for seconds in times_s]


def time_range(low: float, high: float, reference_s: float | None = None) -> str:
    """Format a range of times in the unit of the estimate `reference_s`: 40.2–48.1 h."""
    return join_range(*in_common_unit(low if reference_s is None else reference_s, low, high))


def join_range(low: str, high: str) -> str:
    """Join two formatted values, with a common unit only once: 31.4–32.3%, 40.2–48.1 h, 40 min–3 h, −2 to 5."""
    for unit in (low.partition(NO_BREAK)[1:], ("", "%")):
        suffix = "".join(unit)
        if suffix and low.endswith(suffix) and high.endswith(suffix):
            low = low.removesuffix(suffix)
            break
    return f"{low} to {high}" if "−" in low + high else f"{low}–{high}"


def common_unit(times_s: list[float]) -> str | None:
    """Return the most common unit in which all times lie between 0.1 and 10,000, or None."""
    sizes = [abs(seconds) for seconds in times_s if seconds]
    if not sizes:
        return None
    counts = Counter(duration(seconds).partition(NO_BREAK)[2] for seconds in sizes)
    readable_units = [unit for unit, size in SECONDS.items() if min(sizes) >= 0.1 * size and max(sizes) < 10_000 * size]
    return max(readable_units, key=lambda unit: counts[unit], default=None)


def interval(value: str | None, low: str | None, high: str | None) -> str | None:
    """Format an estimate with its interval: 12.3 h (10.1–14.9), or ≥ 10.1 h without an estimate, or None."""
    if value is None:
        return None if low is None else f"≥{NO_BREAK}{low}"
    if low is None and high is None:
        return value
    if low is None or high is None:
        return f"{value} (up to {high})" if low is None else f"{value} (from {low})"
    bounds = join_range(low, high)
    units = {text.partition(NO_BREAK)[2] for text in (value, low, high)}
    return f"{value} ({bounds.partition(NO_BREAK)[0] if len(units) == 1 else bounds})"


def p_value(value: float) -> str:
    """Format a p-value with its relation: = 0.012, < 0.0001."""
    return "< 0.0001" if value < 1e-4 else f"= {number(value, 2)}"


def plain_p_value(value: float) -> str:
    """Format a p-value for a column of p-values: 0.012, < 0.0001."""
    return p_value(value).removeprefix("= ")


def coefficient(value: float) -> str:
    """Format a correlation with two decimals and a minus sign."""
    return _format_fixed(value, 2)


def points(share: float) -> str:
    """Format a difference of shares in percentage points: −1.2."""
    return _format_fixed(100 * share, 1)


def _format_fixed(value: float, decimals: int) -> str:
    # Adding 0 turns -0.0 into 0.0.
    return f"{round(value, decimals) + 0:.{decimals}f}".replace("-", "−")


def article(text: str) -> str:
    """Return the article before a number in digits: a, but an before 8, 11 and 18."""
    return "an" if re.match(r"8|1[18]\b", text) else "a"


def plural(value: float | Decimal, noun: str) -> str:
    """Format a count with its noun: 1 failure, 2 failures."""
    return f"{count(value)} {noun if value == 1 else plural_noun(noun)}"


def plural_noun(noun: str) -> str:
    """Return the plural of a noun: outages, histories, delays, strata, gaps between outages."""
    if noun == "stratum":
        return "strata"
    prepositions = (" at ", " between ")
    head, preposition, rest = next((noun.partition(word) for word in prepositions if word in noun), (noun, "", ""))
    if preposition:
        return f"{plural_noun(head)}{preposition}{rest}"
    return f"{noun[:-1]}ies" if noun.endswith("y") and noun[-2] not in "aeo" else f"{noun}s"


def capitalise(text: str) -> str:
    return text[:1].upper() + text[1:]


def join_list(parts: Sequence[str]) -> str:
    """Join parts to a list: a; a and b; a, b and c."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def gpu_hours(hours: float) -> str:
    """Format GPU-hours: 1 GPU-hour, 12.3 GPU-hours."""
    return "1 GPU-hour" if hours == 1 else f"{number(hours)} GPU-hours"


def gpus_label(low: int, high: int) -> str:
    """Return the label of a size bucket in GPUs: 1; 3–4; 1,025–2,048."""
    return f"{high:,}" if low == high else f"{low:,}–{high:,}"


def stratification_name(stratum_by: str) -> str:
    """Return the name of a stratification for sentences: GPU type, number of GPUs."""
    names = {"gpu_type": "GPU type", "gpu_count": "number of GPUs", "gpus": "number of GPUs"}
    names["node_gpus"] = "GPUs per node"
    return names.get(stratum_by, stratum_by.replace("_", " "))


def clustering_words(names: Collection[str]) -> str:
    """Describe the clustering of intervals, and whether it includes weeks; names: values of cluster_by."""
    units, blocks = (sorted({name.partition(" and ")[part] for name in names}) for part in (0, 2))
    text = " or ".join(units)
    if blocks == [""]:
        return f"{text} only"
    return f"{text} and {blocks[-1]}" if "" not in blocks else f"{text}, with enough data also by {blocks[-1]}"

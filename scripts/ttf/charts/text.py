"""Words and numbers for people: shares, durations, counts, and labels made of untrusted text."""

import textwrap
import unicodedata
from collections.abc import Collection, Iterable, Sequence
from decimal import Decimal

MINUTE_S, HOUR_S, DAY_S = 60, 3_600, 86_400

FEATURE_NAMES = {
    "gpu_type": "GPU type",
    "gpu_request": "GPU request",
    "cpu_request": "CPU request",
    "memory_request": "memory request",
    "size": "size",
    "gpu_utilisation": "GPU use",
    "cpu_usage": "CPU use",
    "memory_usage": "memory use",
}
FEATURE_UNITS = {
    "gpu_request": "% of one GPU",
    "cpu_request": "% of one core",
    "memory_request": "GiB",
    "size": "instances",
    "gpu_utilisation": "% of one GPU",
    "cpu_usage": "% of one core",
    "memory_usage": "GiB",
}

# Shortened to this many characters: long enough for every GPU type there is, short enough for an axis.
LABEL_LENGTH = 40


def feature_title(feature: str) -> str:
    """A feature as the title of an axis: with its unit, and a capital."""
    name = capital(FEATURE_NAMES.get(feature, feature))
    return f"{name} ({FEATURE_UNITS[feature]})" if feature in FEATURE_UNITS else name


def capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def clustering(names: Collection[str]) -> str:
    """What intervals are clustered by, in words, and whether they allow for weeks; names: as in cluster_by."""
    units, blocks = (sorted({name.partition(" and ")[part] for name in names}) for part in (0, 2))
    text = " or ".join(units)
    if blocks == [""]:
        return f"{text}, weeks not allowed for"
    return f"{text} and {blocks[-1]}" if "" not in blocks else f"{text}, and {blocks[-1]} where enough are seen"


def percent(share: float) -> str:
    """A share as text; one that is not quite nothing or everything never reads 0% or 100%."""
    if share in (0, 1):
        return f"{share * 100:.0f}%"
    if share < 0.0005:
        return "less than 0.1%"
    if share > 0.9995:
        return "more than 99.9%"
    return f"{share * 100:.1f}%" if share < 0.0995 or share > 0.99 else f"{share * 100:.0f}%"


def significant(number: float, digits: int = 3) -> str:
    """A number with so many significant digits, thousands set apart, never in powers of ten."""
    rounded = float(f"{number:.{digits}g}")
    return f"{rounded:,.0f}" if abs(rounded) >= 10 ** (digits - 1) else f"{Decimal(f'{number:.{digits}g}'):f}"


def coefficient(value: float) -> str:
    """A correlation to two digits, with a minus sign where one belongs."""
    # Adding 0 makes minus nothing plain nothing.
    return f"{round(value, 2) + 0:.2f}".replace("-", "−")


def duration(seconds: float) -> str:
    """A time span in the unit people would use."""
    if seconds < MINUTE_S:
        return f"{significant(seconds)} s"
    if seconds < HOUR_S:
        return f"{significant(seconds / MINUTE_S)} min"
    return f"{significant(seconds / HOUR_S)} h" if seconds < 2 * DAY_S else f"{significant(seconds / DAY_S)} d"


def hours(seconds: float) -> str:
    return f"{significant(seconds / HOUR_S)} h"


def gpu_hours(hours: float, digits: int = 3) -> str:
    """1 GPU-hour, 12.3 GPU-hours."""
    number = significant(hours, digits)
    return f"{number} GPU-hour{'' if number == '1' else 's'}"


def count(number: int, noun: str) -> str:
    """1 pod, 2 pods."""
    return f"{number:,} {noun if number == 1 else plural(noun)}"


def gpus_label(low: int, high: int) -> str:
    """A bucket of numbers of GPUs: 1; 3–4; 1,025–2,048."""
    return f"{high:,}" if low == high else f"{low:,}–{high:,}"


def plural(noun: str) -> str:
    """With -s, but for those in -y after a consonant (histories, but delays) and strata: gaps between outages."""
    if noun == "stratum":
        return "strata"
    head, of, rest = next((noun.partition(word) for word in (" at ", " between ") if word in noun), (noun, "", ""))
    if of:
        return f"{plural(head)}{of}{rest}"
    return f"{noun[:-1]}ies" if noun.endswith("y") and noun[-2] not in "aeo" else f"{noun}s"


def listed(parts: Sequence[str]) -> str:
    """a; a and b; a, b and c."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def wrapped(text: str, width: int) -> list[str]:
    """Lines of at most `width` characters; a number stays with its unit."""
    glued = f"{text} "
    for unit in ("%", "s", "min", "h", "d", "GPU", "GPUs"):
        for end in (" ", ",", ";", ".", ")", ":"):
            glued = glued.replace(f" {unit}{end}", f"\u00a0{unit}{end}")
    glued = glued.replace(" = ", "\u00a0=\u00a0")
    return [line.replace("\u00a0", " ") for line in textwrap.wrap(glued, width)]


def labels(values: Iterable[str]) -> dict[str, str]:
    """A short printable label for each of some texts from a trace, different for different texts.

    A trace is untrusted: control and direction characters are taken out (an SVG with them is not even
    well-formed XML), white space is folded, what is long is shortened, what then looks alike is numbered.
    """
    unique: dict[str, str] = {}
    taken: set[str] = set()
    for value in values:
        first = label = _short(value)
        number = 1
        while label in taken and value not in unique:
            number += 1
            label = f"{first} ({number})"
        if value not in unique:
            taken.add(label)
            unique[value] = label
    return unique


def _short(text: str) -> str:
    # Only the beginning can show; cutting first keeps a text of megabytes cheap.
    shown = [" " if c.isspace() else c for c in text[: 10 * LABEL_LENGTH]]
    kept = [c for c in shown if not unicodedata.category(c).startswith("C")]
    folded = " ".join("".join(kept).split()) or "blank"
    return folded if len(folded) <= LABEL_LENGTH else f"{folded[: LABEL_LENGTH - 1]}…"


def in_words(stratum_by: str) -> str:
    """What divides lives into strata, in a sentence; a trace's own strata are words already."""
    return {"gpu_type": "GPU type", "gpu_count": "number of GPUs", "gpus": "number of GPUs"}.get(
        stratum_by, stratum_by.replace("_", " ")
    )

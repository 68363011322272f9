"""Private words that must not reach readers, and their replacements."""

import re

# Pattern -> replacement.
INSTEAD = {
    r"laid to": "attributed to",
    r"goe?s? with (a )?failures?": "factors associated with failure",
    r"told from chance": "statistically significant",
    r"asked (well|its way)": "job-level, censored; published method, our data",
    r"(?<!read )as published": "published method, our data",
    r"effective training time(?! ratio)": "effective training time ratio (ETTR)",
    r"(work|progress) that lasts": "productive time (goodput)",
    r"lives": "jobs at risk, units at risk",
    r"put aside": "quarantined",
    r"asked for": "requested",
    r"competing ends?": "competing risks",
    r"(failure |hazard )?rates? (that )?falls?( with age)?": "decreasing hazard",
    r"lemons?": "nodes with excess failures",
    r"(failed|of|all) trials|\(trials\)": "failed attempts",
    r"run times? to failure(?! \(RTF\))": "RTF",
    r"too (dark|bright)": "pessimistic, optimistic",
    r"by proxy": "any failure, cause unknown",
    r"\d+([.,]\d+)? ?% intervals?": "95% CI",
}
SAID = {
    re.compile(rf"(?<![\w.`/-]){pattern}(?![\w`/]|\.\w)", re.IGNORECASE): replacement
    for pattern, replacement in INSTEAD.items()
}
SAID[re.compile(r"\d[ \u00a0\u202f]%(?![\w(])")] = "% without a space"

# No name of a function, class, parameter or variable: prepositions, pronouns, adverbs and bare participles.
NO_NAMES = set(
    """
    about alike aside asked beside both every found given here it kept known mine of one others ours place places said
    spoken theirs there told under what which who whose why within
    """.split()  # noqa: SIM905
)


def find_private_words(text: str) -> list[str]:
    return [
        f"{match[0]!r} -> {replacement}: {_around(text, match)}"
        for pattern, replacement in SAID.items()
        for match in pattern.finditer(text)
    ]


def _around(text: str, match: re.Match) -> str:
    return " ".join(text[max(match.start() - 30, 0) : match.end() + 30].split())

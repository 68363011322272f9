"""The words that readers do not meet, and what is said instead."""

import re

# Pattern -> what to write instead.
INSTEAD = {
    r"laid to": "attributed to",
    r"goe?s? with (a )?failures?": "factors associated with failure",
    r"told from chance": "statistically significant",
    r"asked (well|its way)": "job-level, censored; as published",
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
SAID = {re.compile(rf"(?<![\w.`/-]){said}(?![\w`/]|\.\w)", re.IGNORECASE): new for said, new in INSTEAD.items()}
SAID[re.compile(r"\d[ \u00a0\u202f]%(?![\w(])")] = "% without a space"


def slips(text: str) -> list[str]:
    """What of a text is said otherwise, with what to write."""
    return [
        f"{found[0]!r} -> {new}: {_around(text, found)}" for said, new in SAID.items() for found in said.finditer(text)
    ]


def _around(text: str, found: re.Match) -> str:
    return " ".join(text[max(found.start() - 30, 0) : found.end() + 30].split())

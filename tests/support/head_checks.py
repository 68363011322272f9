"""Check the head of a section of the page against the limits of ttf.display.section_head."""

import re

from ttf.display.phrases import count_words, list_keys, strip_markup
from ttf.display.section_head import Head
from ttf.display.trace_numbers import Numbers


def check_head(head: Head, m: Numbers) -> Head:
    """Check that the head is short, that its numbers exist and that its words are complete; return it."""
    callout = (head.callout.lead, head.callout.text) if head.callout else ()
    keys = [text for key in head.keys for text in (key.label, key.value, key.note)]
    texts = [head.claim, *head.text, *callout, *keys]
    assert set().union(*map(list_keys, texts)) <= set(m)
    assert not re.search(r"\{|nan|None(?! of )", "\n".join(map(strip_markup, texts)))
    assert count_words(head.claim) <= 18
    assert not any(word in strip_markup(head.claim) for word in ("CI", "p =", "p <"))
    assert sum(map(count_words, head.text)) <= 60
    assert len(head.keys) <= 4
    return head


def check_claim(head: Head, m: Numbers) -> str:
    """Check the head; return its claim as plain text."""
    return strip_markup(check_head(head, m).claim)

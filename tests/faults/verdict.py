"""What is asked of the study whatever it is given: a right answer or one clear message, soon, and in little memory."""

import re
from dataclasses import dataclass

# Of the issue that this harness holds the study to.
LONGEST_S = 60
MOST_BYTES = 1_500_000_000
MOST_LINES = 40
LONGEST_LINE = 2_000


@dataclass(frozen=True)
class Verdict:
    """What became of one case.

    name: how to make it again. answer: `accepted`, `refused`, or `fault`; words: the message, or what fell short.
    seconds: of processor time; tried: how many things one after the other, such as kills.
    """

    kind: str
    name: str
    answer: str
    words: str = ""
    seconds: float = 0.0
    peak_bytes: int = 0
    tried: int = 1

    @property
    def shortcoming(self) -> str:
        """What fell short, in one word; "" if nothing did."""
        if self.answer == "fault":
            return self.words.partition(":")[0]
        if self.seconds > LONGEST_S:
            return "hang"
        return "memory" if self.peak_bytes > MOST_BYTES else ""


def fault_of_message(text: str) -> str:
    """What is amiss with a message to a user; "" if nothing is."""
    lines = text.splitlines()
    if not text.strip():
        return "message: there is none"
    if "Traceback (most recent call last)" in text or re.search(r"^\w*(?:Error|Exception): ", text, re.MULTILINE):
        return f"traceback: {text[-1500:]}"
    if len(lines) > MOST_LINES or max(map(len, lines)) > LONGEST_LINE:
        return f"message: {len(lines)} lines, the longest of {max(map(len, lines)):,} characters: {text[:500]}"
    if re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", text):
        return f"message: holds control characters: {text[:500]!r}"
    return ""

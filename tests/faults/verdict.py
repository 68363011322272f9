"""Requirements for every input: a right answer or one clear message, within limits of time and memory."""

import re
from dataclasses import dataclass

# Limits that every case must meet.
LONGEST_S = 60
MOST_BYTES = 1_500_000_000
MOST_LINES = 40
LONGEST_LINE = 2_000


@dataclass(frozen=True)
class Verdict:
    """Outcome of one case.

    name: reproduces the case. answer: `accepted`, `refused`, or `fault`; words: the message or the shortcoming.
    seconds: processor time; tried: number of consecutive attempts, such as kills.
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
        """Return the kind of shortcoming in one word, or ""."""
        if self.answer == "fault":
            return self.words.partition(":")[0]
        if self.seconds > LONGEST_S:
            return "hang"
        return "memory" if self.peak_bytes > MOST_BYTES else ""


def fault_of_message(text: str) -> str:
    """Return the fault of a message to a user, or ""."""
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

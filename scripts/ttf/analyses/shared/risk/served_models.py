"""The models of a trace as `train_model` left them, and which of them scores."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ttf.engine.errors import StudyError
from ttf.raw.raw_tables import printable

CURRENT = "current.json"
# Decisions after which a model serves.
SERVES = ("promoted", "only model")


@dataclass(frozen=True)
class Stored:
    """A model as its file says it; window: that it was trained on."""

    file: Path
    said: Mapping[str, Any]

    @property
    def window(self) -> str:
        return str(self.said.get("window", self.file.stem))

    @property
    def until_s(self) -> int:
        return self.said["trained_on"]["until_s"]


def current(folder: Path) -> Stored:
    """The model that serves. Raises StudyError where none does, with what to give instead."""
    said = _read(folder / CURRENT)
    if "coefficients" in said:
        return Stored(folder / CURRENT, said)
    windows = [f"MODEL='{stored.window}'" for stored in stored_in(folder)]
    others = f" One that was not promoted scores if it is named: {', '.join(windows)}." if windows else ""
    raise StudyError(f"no model serves this trace: {said.get('why') or 'none was promoted'}.{others}")


def chosen(folder: Path, window: str) -> Stored:
    """The model of a window, by its name or that of its file, promoted or not. Raises StudyError if there is none."""
    stored = stored_in(folder)
    for model in stored:
        if window in (model.window, model.file.name, model.file.stem):
            return model
    there = ", ".join(model.window for model in stored) or "none"
    raise StudyError(f"there is no model of the window '{printable(window)}'; there: {there}.")


def before_part(folder: Path, part: str, parts: Sequence[str], first_s: int) -> Stored:
    """The newest promoted model whose training ended before a part; parts: all, in their order.

    A model of parts was made before those that follow it, though one of them may hold a job that was submitted
    earlier; another where its last known moment is not after first_s, the part's first submission.
    """
    stored = stored_in(folder)
    earlier = parts[: parts.index(part)]
    of_part = {f"part {number}: {name}": name in earlier for number, name in enumerate(parts, start=1)}
    made = [model for model in stored if of_part.get(model.window, model.until_s <= first_s)]
    serve = [model for model in made if model.said.get("decision") in SERVES]
    if not serve:
        there = f"; there, but not promoted: {', '.join(model.window for model in made)} (MODEL=)" if made else ""
        raise StudyError(f"no promoted model was made before the part {part}{there}.")
    return max(serve, key=lambda model: (model.until_s, model.window))


def stored_in(folder: Path) -> list[Stored]:
    """The models of all windows, in the order in which they were made."""
    files = [file for file in sorted(folder.glob("*.json")) if file.name != CURRENT]
    return sorted((Stored(file, _read(file)) for file in files), key=lambda model: (model.until_s, model.file.name))


def _read(file: Path) -> dict[str, Any]:
    try:
        said = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise StudyError(f"{file}: there is no model yet. Run `make report`, which trains it.") from None
    except (OSError, ValueError) as error:
        raise StudyError(
            f"{file}: not as train_model wrote it ({type(error).__name__}). Delete it and run `make report`."
        ) from None
    good = isinstance(said, dict)
    if file.name != CURRENT or (good and "coefficients" in said):
        good = good and isinstance(said.get("trained_on"), dict) and isinstance(said["trained_on"].get("until_s"), int)
    if not good:
        raise StudyError(f"{file}: not as train_model wrote it. Delete it and run `make report`.")
    return said

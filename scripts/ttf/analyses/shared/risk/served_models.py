"""Read the models of a trace that `train_model` wrote, and choose the one that scores."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ttf.engine.errors import StudyError
from ttf.raw.raw_tables import escape_text

CURRENT = "current.json"
# Decisions of models that may serve.
SERVING_DECISIONS = ("promoted", "only model")


@dataclass(frozen=True)
class StoredModel:
    """A model file and its JSON; window: the window it was trained on."""

    file: Path
    document: Mapping[str, Any]

    @property
    def window(self) -> str:
        return str(self.document.get("window", self.file.stem))

    @property
    def until_s(self) -> int:
        """End of the data that the model knows."""
        return self.document["trained_on"]["until_s"]


def current_model(folder: Path) -> StoredModel:
    """Return the model that serves. Raise StudyError if none does; the message names the alternatives."""
    document = _read_model(folder / CURRENT)
    if "coefficients" in document:
        return StoredModel(folder / CURRENT, document)
    windows = [f"--model '{stored.window}'" for stored in list_models(folder)]
    hint = f" One that was not promoted scores if it is named: {', '.join(windows)}." if windows else ""
    raise StudyError(f"no model serves this trace: {document.get('why') or 'none was promoted'}.{hint}")


def model_of_window(folder: Path, window: str) -> StoredModel:
    """Return the model of a window, named by window or file, promoted or not. Raise StudyError if there is none."""
    stored = list_models(folder)
    for model in stored:
        if window in (model.window, model.file.name, model.file.stem):
            return model
    names = ", ".join(model.window for model in stored) or "none"
    raise StudyError(f"there is no model of the window '{escape_text(window)}'; there: {names}.")


def model_before_part(folder: Path, part: str, parts: Sequence[str], first_s: int) -> StoredModel:
    """Return the newest promoted model trained before a part; parts: all, in their order.

    A model of a part precedes every later part, even if that holds jobs submitted earlier. Any other model precedes the
    part if its `until_s` is not after first_s, the part's first submission.
    """
    stored = list_models(folder)
    earlier_parts = parts[: parts.index(part)]
    is_earlier = {f"part {number}: {name}": name in earlier_parts for number, name in enumerate(parts, start=1)}
    candidates = [model for model in stored if is_earlier.get(model.window, model.until_s <= first_s)]
    promoted = [model for model in candidates if model.document.get("decision") in SERVING_DECISIONS]
    if not promoted:
        names = ", ".join(model.window for model in candidates)
        hint = f"; there, but not promoted: {names} (--model)" if names else ""
        raise StudyError(f"no promoted model was made before the part {part}{hint}.")
    return max(promoted, key=lambda model: (model.until_s, model.window))


def list_models(folder: Path) -> list[StoredModel]:
    """Return the models of all windows, in the order in which they were made."""
    files = [file for file in sorted(folder.glob("*.json")) if file.name != CURRENT]
    models = (StoredModel(file, _read_model(file)) for file in files)
    return sorted(models, key=lambda model: (model.until_s, model.file.name))


def _read_model(file: Path) -> dict[str, Any]:
    try:
        model = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise StudyError(f"{file}: there is no model yet. Run `ttf report`, which trains it.") from None
    except (OSError, ValueError) as error:
        raise StudyError(
            f"{file}: not as train_model wrote it ({type(error).__name__}). Delete it and run `ttf report`."
        ) from None
    is_valid = isinstance(model, dict)
    if file.name != CURRENT or (is_valid and "coefficients" in model):
        trained_on = model.get("trained_on") if is_valid else None
        is_valid = isinstance(trained_on, dict) and isinstance(trained_on.get("until_s"), int)
    if not is_valid:
        raise StudyError(f"{file}: not as train_model wrote it. Delete it and run `ttf report`.")
    return model

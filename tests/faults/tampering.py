"""Seeded tampering with a finished study that `ttf verify` must report.

`with tampered(study, kind, seed) as description: fault = fault_of_verify(study)` for each kind of KINDS restores all
files at its end. The study needs its own checkout (study_runs.check_out), because rules and formats are edited too.
"""

import hashlib
import itertools
import json
import os
import random
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path

import study_runs
from faults.verdict import LONGEST_S, Verdict, fault_of_message
from study_runs import ttf_command
from ttf.engine.provenance.seal import seal_json


@dataclass
class Finished:
    """A finished study in a folder with the workflow. own: results/studies/<name>, the only one."""

    folder: Path
    before: dict[Path, tuple[bytes, int] | None] = field(default_factory=dict)

    @cached_property
    def own(self) -> Path:
        return next((self.folder / "results/studies").iterdir())

    @property
    def manifest(self) -> Path:
        return self.own / "manifest.json"

    @cached_property
    def facts(self) -> dict:
        facts = json.loads(self.manifest.read_text(encoding="utf-8", errors="surrogateescape"))
        del facts["digest"]
        return facts

    def pick_file(self, seed: random.Random, kind: str, least: int = 1, beginning: str = "") -> Path:
        """Draw a file of the manifest with at least this size whose name has this beginning."""
        names = [
            name
            for name, product in self.facts[kind].items()
            if product["size"] >= least and name.startswith(beginning)
        ]
        return self.folder / seed.choice(sorted(names))

    def keep(self, path: Path) -> Path:
        """Remember the file at the path, or its absence, for put_back()."""
        self.before[path] = (path.read_bytes(), path.stat().st_mtime_ns) if path.exists() else None
        return path

    def put_back(self) -> None:
        for path, original in reversed(self.before.items()):
            _remove(path)
            if original:
                path.write_bytes(original[0])
                os.utime(path, ns=(original[1], original[1]))
        self.before.clear()


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def fault_of_verify(study: Finished) -> str:
    """Return the fault of `ttf verify`; "" if it reports the tampering in one message."""
    command = ttf_command(study.folder, "verify")
    try:
        process = subprocess.run(command, cwd=study.folder, capture_output=True, text=True, timeout=LONGEST_S)
    except subprocess.TimeoutExpired:
        return "hang: of ttf verify"
    output = process.stdout + process.stderr
    if process.returncode not in (1, 2):
        return f"told not: exit {process.returncode}: {output[-1500:]}"
    return fault_of_message(output)


@contextmanager
def tampered(study: Finished, kind: str, seed: int) -> Iterator[str]:
    """Tamper with the study, yield a description, and restore it."""
    try:
        yield f"{kind}: {KINDS[kind](study, random.Random(f'{kind} {seed}'))}"
    finally:
        study.put_back()


def cases(seed: int, count: int) -> Iterator[tuple]:
    for number, kind in zip(range(count), itertools.cycle(KINDS)):
        yield "tampering", kind, f"{seed}/{number}"


def judge(case: tuple) -> Verdict:
    name, kind, seed = case
    with tampered(_small_study(), kind, seed) as description:
        fault = fault_of_verify(_small_study())
    return Verdict(name, f"{seed} {description}", "fault" if fault else "refused", fault)


@cache
def _small_study() -> Finished:
    study = study_runs.check_out(Path(tempfile.mkdtemp(prefix="fault-")) / "checkout")
    study.snakemake(one_process=True, **study_runs.write_pods(study, study_runs.pods()))
    return Finished(study.folder)


# Tampering functions: (study, seed) -> tampered file. ---------------------------------------------------------


def _change_content(
    kind: str, change: Callable[[bytes, random.Random], bytes], beginning: str = "", dated: bool = False
):
    def tamper(study: Finished, seed: random.Random) -> Path:
        path = study.keep(study.pick_file(seed, kind, beginning=beginning))
        content, date = study.before[path]
        path.write_bytes(change(content, seed))
        if dated:
            os.utime(path, ns=(date, date))
        return path

    return tamper


def _flipped(content: bytes, seed: random.Random) -> bytes:
    position = seed.randrange(len(content))
    return content[:position] + bytes([content[position] ^ 1 << seed.randrange(8)]) + content[position + 1 :]


def _removed(kind: str, beginning: str = ""):
    def tamper(study: Finished, seed: random.Random) -> Path:
        path = study.keep(study.pick_file(seed, kind, beginning=beginning))
        path.unlink()
        return path

    return tamper


def _replaced(make: Callable[[Path, Path], None], kind: str = "products"):
    """Return a function that replaces a file. make: called with its path and a copy outside the results."""

    def tamper(study: Finished, seed: random.Random) -> Path:
        path = study.keep(study.pick_file(seed, kind))
        outside = study.keep(study.folder / "outside")
        outside.write_bytes(study.before[path][0])
        path.unlink()
        make(path, outside)
        return path

    return tamper


def _swapped(study: Finished, seed: random.Random) -> str:
    first, second = study.keep(study.pick_file(seed, "products")), study.keep(study.pick_file(seed, "products"))
    while study.before[second][0] == study.before[first][0]:
        second = study.keep(study.pick_file(seed, "products"))
    first.write_bytes(study.before[second][0])
    second.write_bytes(study.before[first][0])
    return f"{first} and {second}"


def _change_with_checksum(reseals_manifest: bool):
    """Return a function that changes a product and its entry, and optionally the manifest's digest."""

    def tamper(study: Finished, seed: random.Random) -> Path:
        path = _change_content("products", _flipped)(study, seed)
        name, old_digest = str(path.relative_to(study.folder)), hashlib.sha256(study.before[path][0]).hexdigest()
        new_digest = hashlib.sha256(path.read_bytes()).hexdigest()
        text = study.keep(study.manifest).read_text(encoding="utf-8", errors="surrogateescape")
        if reseals_manifest:
            products = study.facts["products"] | {name: study.facts["products"][name] | {"sha256": new_digest}}
            study.manifest.write_bytes(seal_json(study.facts | {"products": products}))
        else:
            study.manifest.write_text(text.replace(old_digest, new_digest), encoding="utf-8", errors="surrogateescape")
        return path

    return tamper


def _added(choose_path: Callable[[Finished, random.Random], Path], make: Callable[[Path], None] = Path.touch):
    def tamper(study: Finished, seed: random.Random) -> Path:
        path = choose_path(study, seed)
        above = next((folder for folder in reversed(path.parents) if not folder.exists()), None)
        study.keep(above or path)
        path.parent.mkdir(parents=True, exist_ok=True)
        make(path)
        return path

    return tamper


def _change_manifest(change: Callable[[bytes, random.Random], bytes]):
    def tamper(study: Finished, seed: random.Random) -> Path:
        study.manifest.write_bytes(change(study.keep(study.manifest).read_bytes(), seed))
        return study.manifest

    return tamper


def _replace_manifest(make: Callable[[Path], None]):
    def tamper(study: Finished, seed: random.Random) -> Path:
        study.keep(study.manifest).unlink()
        make(study.manifest)
        return study.manifest

    return tamper


def _remove_entry(kind: str):
    def tamper(study: Finished, seed: random.Random) -> str:
        name = seed.choice(sorted(study.facts[kind]))
        facts = study.facts | {
            kind: {entry: facts_of_entry for entry, facts_of_entry in study.facts[kind].items() if entry != name}
        }
        # Keep the old digest.
        manifest_parts = study.keep(study.manifest).read_bytes().split(b"\n", 2)
        study.manifest.write_bytes(b"\n".join([*manifest_parts[:2], seal_json(facts).split(b"\n", 2)[2]]))
        return name

    return tamper


def _wrong_value(study: Finished, seed: random.Random) -> str:
    """Replace a random value of the manifest by one of another type and update the digest."""
    value = seed.choice(
        [None, [], {}, "", "../../x", "/dev/zero", 0, -1, 1.5, 10**4000, True, "\ud800", "a\0b", "x" * 9999]
    )
    facts = json.loads(json.dumps(study.facts))
    node, path_of_keys = facts, []
    while isinstance(node, dict | list) and node and len(path_of_keys) < seed.randrange(1, 6):
        above, key = node, seed.choice(list(node) if isinstance(node, dict) else range(len(node)))
        node = above[key]
        path_of_keys.append(key)
    if seed.random() < 0.3 and isinstance(above, dict) and isinstance(value, str):
        above[value] = above.pop(key)
    else:
        above[key] = value
    text = json.dumps(facts, indent=1).encode() + b"\n"
    digest = hashlib.sha256(text).hexdigest().encode()
    study.keep(study.manifest).write_bytes(b'{\n "digest": "' + digest + b'",\n' + text.removeprefix(b"{\n"))
    return f"{'.'.join(map(str, path_of_keys))[:80]} = {str(value)[:20]!r}"


def _long(study: Finished, seed: random.Random) -> Path:
    os.truncate(study.keep(study.manifest), 10**9)
    return study.manifest


def _replace_by_link(path: Path, outside: Path) -> None:
    path.symlink_to(outside)


def _name(seed: random.Random) -> str:
    return seed.choice(["more.csv", ".hidden", "ä b.csv", "a\nb", "jobs.parquet.new", "-rf", "{a}", "index.html.gz"])


TEXTS_OF_MANIFEST = {
    "empty": b"",
    "a list": b"[]",
    "an object": b"{}",
    "null": b"null",
    "a number": b"1" * 5000,
    "a text": b'"manifest"',
    "deep": b"[" * 200_000,
    "deep objects": b'{"a":' * 200_000,
    "not a number": b'{"products": NaN}',
    "a key twice": b'{"products": {}, "products": {}}',
    "UTF-16": '{"products": {}}'.encode("utf-16"),
    "binary": bytes(range(256)) * 100,
}

KINDS: dict[str, Callable[[Finished, random.Random], object]] = {
    "a bit of a product": _change_content("products", _flipped),
    "a bit of a product, with its old date": _change_content("products", _flipped, dated=True),
    "a product made longer": _change_content("products", lambda content, _: content + b"\n"),
    "a product emptied": _change_content("products", lambda content, _: b""),
    "a product removed": _removed("products"),
    "two products swapped": _swapped,
    "a link for a product": _replaced(_replace_by_link),
    "a pipe for a product": _replaced(lambda path, _: os.mkfifo(path)),
    "a folder for a product": _replaced(lambda path, _: path.mkdir()),
    "a product with its checksum": _change_with_checksum(reseals_manifest=False),
    "a product with its checksum and the digest": _change_with_checksum(reseals_manifest=True),
    "a file added to the results": _added(lambda study, seed: study.folder / "results" / _name(seed)),
    "a file added to a trace": _added(lambda study, seed: study.pick_file(seed, "products").with_name(_name(seed))),
    "a file added to the study": _added(lambda study, seed: study.own / _name(seed)),
    "a file added in folders": _added(lambda study, seed: study.own / "report/more" / _name(seed) / "deeper.txt"),
    "a pipe added": _added(lambda study, seed: study.pick_file(seed, "products").with_name(_name(seed)), os.mkfifo),
    "a bit of the manifest": _change_manifest(_flipped),
    "a byte cut from the manifest": _change_manifest(lambda content, seed: content[: seed.randrange(len(content))]),
    "a byte more in the manifest": _change_manifest(lambda content, seed: content + seed.randbytes(1)),
    "other ends of lines in the manifest": _change_manifest(lambda content, _: content.replace(b"\n", b"\r\n")),
    "a product's entry removed": _remove_entry("products"),
    "a raw file's entry removed": _remove_entry("raw"),
    "a module's entry removed": _remove_entry("code"),
    "a value of the manifest": _wrong_value,
    "the manifest removed": _replace_manifest(lambda path: None),
    "a pipe for the manifest": _replace_manifest(os.mkfifo),
    "a folder for the manifest": _replace_manifest(Path.mkdir),
    "a link for the manifest": _replace_manifest(lambda path: path.symlink_to("/dev/zero")),
    "a manifest of 1 GB": _long,
    **{
        f"a manifest: {label}": _change_manifest(lambda *_, text=text: text)
        for label, text in TEXTS_OF_MANIFEST.items()
    },
    "a rule edited": _change_content("code", lambda content, _: content + b"# more\n", "workflow/rules/"),
    "a script edited": _change_content("code", lambda content, _: content + b"\nx = 1\n", "scripts/"),
    "a setting edited": _change_content("code", lambda content, _: content + b"# more\n", "config/"),
    "a file of the workflow removed": _removed("code", "workflow/rules/"),
    "a file of the page added": _added(lambda study, seed: study.folder / "report/page/more.js"),
    "a format added": _added(lambda study, seed: study.folder / "scripts/ttf/formats/more.yaml"),
    "a raw file edited": _change_content("raw", _flipped),
    "a raw file removed": _removed("raw"),
    "a link for a raw file": _replaced(_replace_by_link, "raw"),
    "a link for a file of the workflow": _replaced(_replace_by_link, "code"),
    "a file added to the raw files": _added(
        lambda study, seed: study.pick_file(seed, "raw").with_name(
            seed.choice(["2026.txt", "ä b.csv", "a\nb", "-rf", "{a}"])
        )
    ),
    "a folder added to the raw files": _added(
        lambda study, seed: study.pick_file(seed, "raw").with_name("more") / "2026.txt"
    ),
    "a folder added beside the studies": _added(lambda study, seed: study.own.parent / "more" / _name(seed)),
}

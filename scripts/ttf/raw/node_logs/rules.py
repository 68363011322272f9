"""Search messages by the rules of config/node_log_rules.yaml.

Polars compiles the patterns: its engine has neither look-around nor back-references, so the time of a search is
proportional to the text.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import polars as pl

from ttf.raw.node_logs.merging import number_close_rows

ERROR_COLUMNS: dict[str, type[pl.DataType]] = {
    "code": pl.String,
    "gpu": pl.String,
    "component": pl.String,
    "severity": pl.String,
}
ERROR_COLUMNS |= {"application": pl.Boolean}
UNKNOWN = "Unknown"
_DEFAULTS = {"severity": "error", "application": False}
# A named group, an escape, a class such as [:alpha:], the start of a class, or a character.
_TOKEN = r"\(\?P?<\w+>|\\.|\[:\^?\w+:\]|\[\^?\]?|."


@dataclass(frozen=True)
class Rules:
    """rules, multiline, boot, job_start, monitors, codes: as in the file of rules."""

    rules: tuple[Mapping, ...]
    multiline: tuple[str, ...]
    boot: tuple[str, ...]
    job_start: tuple[str, ...]
    monitors: tuple[Mapping, ...]
    codes: Mapping[str, Mapping]

    @classmethod
    def from_options(cls, options: Mapping) -> "Rules":
        lists = ("rules", "multiline", "boot", "job_start", "monitors")
        return cls(codes=options.get("codes", {}), **{key: tuple(options.get(key, ())) for key in lists})

    @cached_property
    def any_pattern(self) -> str:
        """Return a pattern that occurs in every line of interest: one search of each line instead of one per rule."""
        rules = (rule["pattern"] for rule in self.rules if rule.get("severity") != "none")
        patterns = (*rules, *self.multiline, *self.boot, *self.job_start)
        return "|".join(map(widen, patterns)) or r"\A\b\B"

    @cached_property
    def code_by_fold(self) -> dict[str, str]:
        names = [*self.codes, *(rule["code"] for rule in self.rules)]
        return {fold_code(name): name for name in reversed(names)}


def split_pattern(pattern: str) -> list[tuple[str, bool]]:
    """Return the tokens of a pattern without its comments, and whether each is inside a class."""
    has_comments = re.search(r"\(\?[A-WYZa-wyz]*x", pattern)
    depth, tokens = 0, []
    for token in re.findall(rf"#[^\n]*|{_TOKEN}" if has_comments else _TOKEN, pattern, re.DOTALL):
        if not has_comments or token[0] != "#":
            tokens.append((token, depth > 0))
            depth += token in ("[", "[^", "[]", "[^]")
            depth -= token == "]" and depth > 0
    return tokens


def widen(pattern: str) -> str:
    """Return a pattern that occurs in each line whose message the given pattern matches.

    Names are removed, as one may occur only once in a pattern; and so are anchors, as a message is only a part of its
    line. Without look-around, a pattern without its anchors matches more, never less.
    """
    kept = [
        "(?:" if token.startswith("(?") else token
        for token, in_class in split_pattern(pattern)
        if in_class or token not in ("^", "$", r"\A", r"\z")
    ]
    return f"(?:{''.join(kept)})"


def fold_code(code: str) -> str:
    return re.sub(r"[\s_-]+", " ", code.strip()).upper()


def join_messages(lines: pl.DataFrame, rules: Rules, merge_s: int) -> pl.DataFrame:
    """Return one row per message, with last_s and lines: how many lines it has, by the patterns `multiline`.

    lines: name (the node), time_s, line and message.
    """
    message = pl.col("message")
    keys = [pl.concat_str(pl.lit(f"{n} "), message.str.extract(part, 1)) for n, part in enumerate(rules.multiline)]
    lines = lines.with_columns(key=pl.coalesce(*keys, pl.int_range(pl.len()).cast(pl.String)))
    lines = lines.sort("name", "key", "time_s", "line")
    group = number_close_rows(["name", "key"], "time_s", "time_s", merge_s).alias("group")
    sums = {"message": message.str.join("\n"), "last_s": pl.col("time_s").max(), "lines": pl.len().cast(pl.Int64)}
    first = pl.all().exclude("key", "message").first()
    return lines.group_by(group, maintain_order=True).agg(first, **sums).sort("line")


def find_errors(messages: pl.Series, rules: Rules) -> pl.DataFrame:
    """Return ERROR_COLUMNS for each message by the first rule that matches; null where none does.

    gpu: its PCI address without the function, or the number in the message; empty if none is named. A rule with the
    severity none picks nothing, and keeps the rules after it from doing so.
    """
    frame = pl.DataFrame({"message": messages, "row": pl.int_range(len(messages), eager=True)})
    rows, remaining = [], frame
    for rule in rules.rules:
        is_match = pl.col("message").str.contains(f"(?m){rule['pattern']}").fill_null(False)
        matches, remaining = remaining.filter(is_match), remaining.filter(~is_match)
        if matches.height and rule.get("severity") != "none":
            rows.append(_apply_rule(matches, rule).drop("message"))
        if not remaining.height:
            break
    schema: dict[str, type[pl.DataType]] = {"row": pl.Int64, **ERROR_COLUMNS}
    errors = describe_codes(pl.concat([pl.DataFrame(schema=schema), *rows]), rules)
    return frame.select("row").join(errors, on="row", how="left", maintain_order="left").drop("row")


def _apply_rule(matches: pl.DataFrame, rule: Mapping) -> pl.DataFrame:
    groups = re.findall(r"[(][?]P?<(code|gpu)>", rule["pattern"])
    captures = pl.col("message").str.extract_groups(f"(?m){rule['pattern']}")
    suffix = captures.struct.field("code").fill_null("") if "code" in groups else pl.lit("")
    gpu = captures.struct.field("gpu").fill_null("") if "gpu" in groups else pl.lit("")
    return matches.with_columns(
        code=pl.concat_str(pl.lit(rule["code"]), suffix, separator=" ").str.strip_chars(),
        gpu=normalise_gpu(gpu),
        component=pl.lit(rule["component"]),
        severity=pl.lit(rule.get("severity", _DEFAULTS["severity"])),
        application=pl.lit(rule.get("application", _DEFAULTS["application"])),
    )


def normalise_gpu(gpu: pl.Expr) -> pl.Expr:
    """Return PCI addresses as 0000:05:00; other texts as they are."""
    text = gpu.fill_null("").str.strip_chars().str.replace(r"^(?i:PCI):", "").str.strip_chars(":").str.to_lowercase()
    address = text.str.extract_groups(r"^(?:([0-9a-f]{4,8}):)?([0-9a-f]{2}):([0-9a-f]{2})(?:\.[0-9a-f])?$")
    domain = address.struct.field("1").fill_null("0000").str.tail(4)
    whole = pl.concat_str(domain, address.struct.field("2"), address.struct.field("3"), separator=":")
    return pl.when(address.struct.field("2").is_not_null()).then(whole).otherwise(text)


def describe_own_codes(codes: pl.Series, gpus: pl.Series, severities: pl.Series, rules: Rules) -> pl.DataFrame:
    """Return ERROR_COLUMNS of events with codes from a monitor; a severity from the monitor takes precedence."""
    component = pl.lit(UNKNOWN)
    for monitor in reversed(rules.monitors):
        component = (
            pl.when(pl.col("code").str.contains(monitor["pattern"]))
            .then(pl.lit(monitor["component"]))
            .otherwise(component)
        )
    frame = pl.DataFrame({"code": canonical_codes(codes, rules), "gpu": gpus, "own": severities})
    frame = frame.with_columns(
        gpu=normalise_gpu(pl.col("gpu")),
        component=component,
        severity=pl.lit(_DEFAULTS["severity"]),
        application=pl.lit(_DEFAULTS["application"]),
    )
    described = describe_codes(frame, rules)
    return described.select("code", "gpu", "component", pl.coalesce("own", "severity").alias("severity"), "application")


def canonical_codes(codes: pl.Series, rules: Rules) -> pl.Series:
    """Return codes as the rules name them: XID79 and xid_79 as "XID 79", IB_LINK as "IB LINK"; others as they are."""
    names = {}
    for code in codes.drop_nulls().unique():
        folded = re.sub(r"^(S?XID) ?0*([0-9]+)$", r"\1 \2", fold_code(code))
        is_xid = re.fullmatch(r"S?XID [0-9]+", folded)
        names[code] = folded if is_xid else rules.code_by_fold.get(folded, code)
    return codes.replace(names)


def describe_codes(errors: pl.DataFrame, rules: Rules) -> pl.DataFrame:
    """Replace component, severity and application by what the rules say about the code, where they say something."""
    if not rules.codes:
        return errors
    keys = ("component", "severity", "application")
    rows = [{"code": code, **{key: text.get(key) for key in keys}} for code, text in rules.codes.items()]
    meanings = pl.DataFrame(rows, schema={"code": pl.String} | {key: ERROR_COLUMNS[key] for key in keys})
    joined = errors.join(meanings, on="code", how="left", maintain_order="left", suffix="_of_code")
    texts = {key: pl.coalesce(f"{key}_of_code", key) for key in keys}
    return joined.with_columns(**texts).select(errors.columns)

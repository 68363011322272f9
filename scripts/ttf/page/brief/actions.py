"""Actions to take, by the GPU-hours that each could save at most, and those that are not worth doing."""

from collections.abc import Sequence

from ttf.display import statement_rules
from ttf.display.brief_model import Action
from ttf.display.phrases import cost_text, join_parts, quote_trace_text
from ttf.display.trace_numbers import Numbers
from ttf.engine import words
from ttf.page.brief.drain_commands import command_note, drain_command, name_nodes

# An action that saves less than this share of the GPU time, or of a run's wall-clock time, is not worth doing.
MIN_SHARE, MIN_SHARE_OF_RUN, MIN_NAMED_SHARE = 0.001, 0.01, 0.01
MAX_ACTIONS = 5
_NO_CAUSES = "Without recorded causes and long runs, no action is certain to recover GPU time"
# Components of a node that draining it protects jobs from.
_NODE_PARTS = ("GPU", "GPU memory", "NVLink", "NVSwitch", "PCIe", "Memory", "CPU", "Power and cooling")
UPPER, MODEL, MEASURED = "upper bound", "model", "measured"
# The name of an action in the summary, and in the list of those not worth doing.
_NAMES = {
    "save_state": ("Saving state before the time limit could recover at most", "saving state before the time limit"),
    "checkpoint": ("Checkpoints could recover at most", "more checkpoints"),
    "no_retry": ("Fewer retries could recover", "stopping retries"),
    "trial_on_one_gpu": ("A trial run on one GPU could recover", "trial run on one GPU"),
    "drain": ("Draining nodes with excess failures could recover at most", "draining nodes"),
    "group": ("Fewer failures of one group could recover at most", "fewer failures of one group"),
}


def actions(
    m: Numbers, unit: str, drains: Sequence[str] = (), in_slurm: bool = False, most: int = MAX_ACTIONS
) -> tuple[tuple[Action, ...], tuple[str, ...], tuple[str, ...], str]:
    """Return at most `most` actions, summaries of the others, the names of those not worth doing, and a claim.

    Without recorded causes and long runs, what checkpoints save is uncertain, so they are among the others. drains:
    names of the listed nodes of DRAIN_LIST, in its order; in_slurm: whether to give Slurm's commands for them.
    """
    if statement_rules.r12_few_gpus(m):
        return (), (), (), ""
    candidates = {
        "save_state": _save_state_action(m, unit),
        "checkpoint": _checkpoint_action(m, unit),
        "no_retry": _no_retry_action(m, unit),
        "trial_on_one_gpu": _trial_action(m, unit),
        "drain": _drain_action(m, drains, in_slurm),
        "group": _group_action(m, unit),
    }
    possible = {name: action for name, action in candidates.items() if action}
    worthwhile = [name for name in possible if m.value(f"actions.{_action_key(m, name)}.share", 1.0) >= MIN_SHARE]
    worthwhile.sort(key=lambda name: -m.value(f"actions.{_action_key(m, name)}.gpu_hours", 0.0))
    not_worth = tuple(_format_not_worth(m, name) for name in possible if name not in worthwhile)
    uncertain = ["checkpoint"] if "checkpoint" in worthwhile and statement_rules.are_checkpoints_uncertain(m) else []
    worthwhile = [name for name in worthwhile if name not in uncertain]
    unpriced = (_alarm_action(m), _requeue_action(m), _writes_action(m))
    action_list = [possible[name] for name in worthwhile] + [action for action in unpriced if action]
    has_none = m.value("lemons.lemons", 1) == 0 and m.value("lemons.tested", 0) and not m.value("drains.listed")
    if has_none and not statement_rules.r11_no_power(m):
        not_worth += ("draining nodes (none of [lemons.tested] flagged)",)
    others = tuple(action.summary for action in action_list[most:] + [possible[name] for name in uncertain])
    claim = _NO_CAUSES if uncertain and not worthwhile else _summarise_best_action(m, worthwhile)
    return tuple(action_list[:most]), others, not_worth, claim


def _summarise_best_action(m: Numbers, worthwhile: list[str]) -> str:
    if not worthwhile:
        has_time = m.value("lost_work.gpu_hours", 0.0) > 0
        return f"No tested action recovers {words.share(MIN_SHARE)} of the GPU time" if has_time else ""
    share = f"actions.{_action_key(m, worthwhile[0])}.share"
    if share not in m:
        return ""
    return f"{_NAMES[worthwhile[0]][0]} [{share}] of the GPU time"


def _action_key(m: Numbers, name: str) -> str:
    """Return the key of an action; retries are judged on deterministic failures if those are known."""
    has_causes = "actions.no_retry_of_deterministic.gpu_hours" in m
    return "no_retry_of_deterministic" if name == "no_retry" and has_causes else name


def _effect(m: Numbers, name: str, bound: str = "≤ ") -> tuple[str, str]:
    """Return effect and note: "≤ 895,000", "GPU-h in 99 days, 25.8% of all"."""
    hours, share = f"actions.{name}.gpu_hours", f"actions.{name}.share"
    period = " in [period.days] days" if "period.days" in m else ""
    share_text = f", [{share}] of all" if share in m else ""
    return f"{bound}[{hours}]", join_parts(f"GPU-h{period}{share_text}", cost_text(m, f"actions.{name}.cost"))


def _owners(m: Numbers, *categories: str) -> str:
    """Return a sentence that names the account and the partition with the most GPU time of the first category known."""
    prefixes = [f"ledger.{category}.{by}" for category in categories for by in ("account", "partition")]
    owners = [
        f"{prefix.rpartition('.')[2]} {quote_trace_text(m[f'{prefix}.1.name'], 24)} ([{prefix}.1.gpu_hours] GPU-h)"
        for prefix in prefixes
        if f"{prefix}.2.name" in m
    ]
    return f" Most affected: {words.join_list(owners[:2])}." if owners else ""


def _save_state_action(m: Numbers, unit: str) -> Action | None:
    if not m.value("actions.save_state.gpu_hours"):
        return None
    timeouts = "[states.timeouts attempt] ended at a time limit."
    owners = _owners(m, "time_limit") if m.value("actions.save_state.share", 0.0) >= MIN_NAMED_SHARE else ""
    evidence = f"{timeouts} Checkpoint before the limit, or request a longer one.{owners}"
    return Action("Save state before the time limit", evidence, *_effect(m, "save_state"), UPPER, "causes")


def _checkpoint_action(m: Numbers, unit: str) -> Action | None:
    if not m.value("actions.checkpoint.gpu_hours"):
        return None
    min_gpus = m["actions.checkpoint.above_gpus"]
    scope = f"{unit}s above [actions.checkpoint.above_gpus GPU]" if min_gpus else f"{unit}s"
    frequency = "hourly" if m["lost_work.checkpoint_interval_s"] == 3600 else "often"
    is_any_failure = statement_rules.r1_cause_unknown(m)
    kind = "failures of any cause" if is_any_failure else "infrastructure failures"
    evidence = (
        f"[actions.checkpoint.failures] of [lost_work.infra_failures] {kind} hit them and ended attempts of "
        "[actions.checkpoint.ended] GPU-h; with checkpoints, [actions.checkpoint.lost] would be lost."
    )
    if is_any_failure:
        evidence += " This includes errors that would recur."
    evidence += _owners(m, "infra_kept", "failed_unrecorded")
    return Action(f"Confirm that {scope} checkpoint {frequency}", evidence, *_effect(m, "checkpoint"), UPPER, "lost")


def _no_retry_action(m: Numbers, unit: str) -> Action | None:
    name = _action_key(m, "no_retry")
    if f"actions.{name}.gpu_hours" not in m or f"what_if.{name}.affected" not in m:
        return None
    kind = "deterministic failures" if name == "no_retry_of_deterministic" else "failures"
    evidence = f"[what_if.{name}.affected {unit}] had retries after such a failure."
    if m.value(f"what_if.{name}.given_up"):
        evidence += (
            f" [what_if.{name}.given_up] of them succeeded in the end: their "
            f"[what_if.{name}.given_up_gpu_hours] GPU-h are subtracted."
        )
    evidence += _owners(m, "failed", "failed_unrecorded")
    return Action(f"Stop automatic retries of {kind}", evidence, *_effect(m, name, ""), MEASURED, "lost")


def _trial_action(m: Numbers, unit: str) -> Action | None:
    name = "trial_on_one_gpu"
    if f"actions.{name}.gpu_hours" not in m:
        return None
    evidence = (
        f"A trial of [what_if.{name}.trial_s] on one GPU would have caught [what_if.{name}.affected {unit}] "
        f"of [what_if.{name}.n].{_owners(m, 'failed', 'failed_unrecorded')}"
    )
    return Action("Run large jobs on one GPU first", evidence, *_effect(m, name, ""), MEASURED, "lost")


def _drain_action(m: Numbers, drains: Sequence[str], in_slurm: bool) -> Action | None:
    # Users' failures take ordinary nodes as equal, and failures of components with a test of outages are these outages.
    is_for_drains = m.value("lemons.basis", "") not in ["proxy", "component"][: 1 + bool(m.value("drains.nodes", 0))]
    has_failures = is_for_drains and m.value("lemons.lemons", 0) and "lemons.share_of_failures" in m
    has_outages = m.value("drains.listed", 0)
    if not has_failures and not has_outages:
        return None
    tests = {"failures": ("lemons", "tested", has_failures), "outages": ("drains", "nodes", has_outages)}
    keys = {kind: names for kind, (*names, is_listed) in tests.items() if is_listed}
    excess, basis = f"excess {' or '.join(keys)}", UPPER
    evidence = [
        f"[{test}.{'lemons' if kind == 'failures' else 'listed'}] of [{test}.{n}] nodes with excess {kind}: "
        f"[{test}.share_of_{kind}] of all."
        for kind, (test, n) in keys.items()
    ]
    evidence += _first_node(m)
    if has_failures and "actions.drain.gpu_hours" in m:
        evidence.append("Assumes failures of average cost.")
        effect, note = _effect(m, "drain")
    elif has_failures:
        effect, note = "≤ [lemons.share_of_failures]", "of the failures"
    elif "drains.saved_gpu_hours" in m:
        effect, basis = "[drains.saved_gpu_hours]", MODEL
        note = join_parts("GPU-h of outages a week", cost_text(m, "drains.saved_cost"))
    else:
        effect, note = "≤ [drains.share_of_outages]", "of the outages"
    command = drain_command(drains, excess) if in_slurm else ""
    verb = "drain" if command or "actions.drain.gpu_hours" in m else "replace"
    title = f"Check or {verb} {name_nodes(drains) if drains else f'nodes with {excess}'}"
    text = " ".join(evidence) + (command_note(drains) if command else "")
    return Action(title, text, effect, note, basis, "nodes" if has_failures else "outages", command)


def _first_node(m: Numbers) -> list[str]:
    """Return the evidence of the first node of the list: n201 (a100): 6 failures, 0.225 expected."""
    counts = [
        f"[drains.first.{kind} {kind.removesuffix('s')}], [drains.first.{kind}_expected] expected"
        for kind in ("failures", "outages")
        if f"drains.first.{kind}" in m and f"drains.first.{kind}_expected" in m
    ]
    if not counts:
        return []
    fleet = m.value("drains.first.failure_fleet", m["drains.first.fleet"])
    fleet_text = "" if fleet in ("all", "unknown") else f" ({quote_trace_text(fleet, 24)})"
    return [f"{quote_trace_text(m['drains.first.node'], 24)}{fleet_text}: {'; '.join(counts)}."]


def _group_action(m: Numbers, unit: str) -> Action | None:
    """Recommend the account or GPU type with excess failures if it explains more than a checkpoint could save."""
    hours = m.value("actions.group.gpu_hours", 0.0)
    is_worthwhile = m.value("actions.group.share", 0.0) >= MIN_SHARE
    if not is_worthwhile or hours <= m.value("actions.checkpoint.gpu_hours", 0.0):
        return None
    group = f"{words.stratification_name(m['actions.group.group_by'])} {quote_trace_text(m['actions.group.group'], 24)}"
    evidence = f"[actions.group.failures] of its {unit}s failed, [actions.group.expected] expected at the share of all "
    evidence += f"other {unit}s. Effect: its GPU time in failures beyond that share."
    return Action(f"Find why {group} fails more often", evidence, *_effect(m, "group"), UPPER, "outcomes")


def _alarm_action(m: Numbers) -> Action | None:
    """Recommend the code of nodes' logs that announces outages in time, else the first that precedes failures.

    The evidence names all other codes that precede failures.
    """
    key = "node_errors.code.1"
    if f"{key}.code" not in m:
        return None
    code = quote_trace_text(m[f"{key}.code"], 24)
    evidence = f"[{key}.failed] of [{key}.attempts_hit attempt] that it hit failed within [node_errors.window_s], "
    evidence += f"[{key}.expected] by chance."
    if m.value(f"{key}.outages"):
        evidence += f" An alarm would have announced [{key}.announced] of [{key}.outages outage] "
        evidence += f"[node_errors.lead_s] before, with [{key}.false_alarms_per_week] false alarms a week."
    ranks = range(2, m["node_errors.codes_preceding"] + 1)
    others = [f"node_errors.code.{rank}" for rank in ranks if f"node_errors.code.{rank}.code" in m]
    if others:
        texts = [f"{quote_trace_text(m[f'{key}.code'], 24)} ([{key}.failed] of [{key}.attempts_hit])" for key in others]
        evidence += f" Also before failures: {words.join_list(texts)}."
    verb = "Drain nodes after" if m.value(f"{key}.component", "") in _NODE_PARTS else "Find the cause of"
    title = f"Alarm on {code} of the nodes' logs" if m.value(f"{key}.alarm") else f"{verb} {code}"
    return Action(title, evidence, "", "", MEASURED, "causes")


def _requeue_action(m: Numbers) -> Action | None:
    saved = m.value("actions.requeue.saved_s", 0.0)
    if "ettr.by" not in m or saved < MIN_SHARE_OF_RUN * m.value(f"ettr.{m['ettr.by']}.wall_s", 0.0) or not saved:
        return None
    method = f"ettr.{m['ettr.by']}"
    evidence = f"Each of [{method}.interruptions] expected restarts waits [{method}.queue_s]. "
    evidence += "Requeue with priority, or keep spares."
    effect = "−[actions.requeue.saved_s]"
    note = f"of [{method}.wall_s], per run on {statement_rules.target(m)}"
    return Action("Let interrupted large runs restart without queueing", evidence, effect, note, MODEL, "large-runs")


def _writes_action(m: Numbers) -> Action | None:
    if m.value("actions.writes.gpu_hours", 0.0) <= 0:
        return None
    run = statement_rules.target(m)
    source = "measured" if m.value("training.checkpoint_write_s", 0) else "assumed"
    evidence = f"From [ettr.assumed.checkpoint_write] ({source}) to [actions.writes.write_s], for one run on {run}."
    note = join_parts("GPU-h per week of work", cost_text(m, "actions.writes.cost"))
    return Action("Make checkpoint writes faster", evidence, "[actions.writes.gpu_hours]", note, MODEL, "large-runs")


def _format_not_worth(m: Numbers, name: str) -> str:
    key = _action_key(m, name)
    share = m.value(f"actions.{key}.share", 0.0)
    share_text = f", [actions.{key}.share]" if share > 0 else ""
    return f"{_NAMES[name][1]} (net [actions.{key}.gpu_hours] GPU-h{share_text})"

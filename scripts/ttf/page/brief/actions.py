"""Actions to take, by the GPU-hours that each could save at most, and those that are not worth doing."""

from ttf.display import statement_rules
from ttf.display.brief_model import Action
from ttf.display.phrases import fill_numbers
from ttf.display.trace_numbers import Numbers
from ttf.engine import words

# An action that saves less than this share of the GPU time, or of a run's wall-clock time, is not worth doing.
MIN_SHARE, MIN_SHARE_OF_RUN = 0.001, 0.01
MAX_ACTIONS = 5
UPPER, MODEL, MEASURED = "upper bound", "model", "measured"
# The name of an action in the summary, and in the list of those not worth doing.
_NAMES = {
    "save_state": ("Saving state before the time limit could recover at most", "saving state before the time limit"),
    "checkpoint": ("Checkpoints could recover at most", "more checkpoints"),
    "no_retry": ("Fewer retries could recover", "stopping retries"),
    "trial_on_one_gpu": ("A trial run on one GPU could recover", "trial run on one GPU"),
    "drain": ("Draining nodes with excess failures could recover at most", "draining nodes"),
}


@fill_numbers
def actions(m: Numbers, unit: str) -> tuple[tuple[Action, ...], tuple[str, ...], str]:
    """Return at most five actions, the names of those not worth doing, and a summary sentence."""
    if statement_rules.r12_few_gpus(m):
        return (), (), ""
    candidates = {
        "save_state": _save_state_action(m),
        "checkpoint": _checkpoint_action(m, unit),
        "no_retry": _no_retry_action(m, unit),
        "trial_on_one_gpu": _trial_action(m, unit),
        "drain": _drain_action(m),
    }
    possible = {name: action for name, action in candidates.items() if action}
    worthwhile = [name for name in possible if m.value(f"actions.{_action_key(m, name)}.share", 1.0) >= MIN_SHARE]
    worthwhile.sort(key=lambda name: -m.value(f"actions.{_action_key(m, name)}.gpu_hours", 0.0))
    action_list = [possible[name] for name in worthwhile] + [
        action for action in (_requeue_action(m), _writes_action(m)) if action
    ]
    not_worth = tuple(_format_not_worth(m, name) for name in possible if name not in worthwhile)
    if m.value("lemons.lemons", 1) == 0 and m.value("lemons.tested", 0) and not statement_rules.r11_no_power(m):
        not_worth += ("draining nodes (none of [lemons.tested] flagged)",)
    return tuple(action_list[:MAX_ACTIONS]), not_worth, _summarise(m, worthwhile)


def _summarise(m: Numbers, worthwhile: list[str]) -> str:
    if not worthwhile:
        has_time = m.value("lost_work.gpu_hours", 0.0) > 0
        return f"No tested action recovers {words.share(MIN_SHARE)} of the GPU time" if has_time else ""
    share = f"actions.{_action_key(m, worthwhile[0])}.share"
    if not m.has(share):
        return ""
    return f"{_NAMES[worthwhile[0]][0]} [{share}] of the GPU time"


def _action_key(m: Numbers, name: str) -> str:
    """Return the key of an action; retries are judged on deterministic failures if those are known."""
    has_causes = m.has("actions.no_retry_of_deterministic.gpu_hours")
    return "no_retry_of_deterministic" if name == "no_retry" and has_causes else name


def _effect(m: Numbers, name: str, bound: str = "≤ ") -> tuple[str, str]:
    """Return effect and note: "≤ 895,000", "GPU-h in 99 days, 25.8% of all"."""
    hours, share = f"actions.{name}.gpu_hours", f"actions.{name}.share"
    period = " in [period.days] days" if m.has("period.days") else ""
    share_text = f", [{share}] of all" if m.has(share) else ""
    return f"{bound}[{hours}]", f"GPU-h{period}{share_text}"


def _save_state_action(m: Numbers) -> Action | None:
    if not m.value("actions.save_state.gpu_hours", 0.0):
        return None
    evidence = "[states.timeouts attempt] ended at a time limit. Checkpoint before the limit, or request a longer one."
    return Action("Save state before the time limit", evidence, *_effect(m, "save_state"), UPPER, "causes")


def _checkpoint_action(m: Numbers, unit: str) -> Action | None:
    if not m.value("actions.checkpoint.gpu_hours", 0.0):
        return None
    scope = f"{unit}s above [actions.checkpoint.above_gpus GPU]" if m["actions.checkpoint.above_gpus"] else f"{unit}s"
    frequency = "hourly" if m["lost_work.checkpoint_interval_s"] == 3600 else "often"
    is_any_failure = statement_rules.r1_cause_unknown(m)
    kind = "failures of any cause" if is_any_failure else "infrastructure failures"
    evidence = (
        f"[actions.checkpoint.failures] of [lost_work.infra_failures] {kind} hit them and lost "
        "[actions.checkpoint.ended] GPU-h; with checkpoints, [actions.checkpoint.lost] would be lost."
    )
    if is_any_failure:
        evidence += " This includes errors that would recur."
    return Action(f"Confirm that {scope} checkpoint {frequency}", evidence, *_effect(m, "checkpoint"), UPPER, "lost")


def _no_retry_action(m: Numbers, unit: str) -> Action | None:
    name = _action_key(m, "no_retry")
    if not m.has(f"actions.{name}.gpu_hours") or not m.has(f"what_if.{name}.affected"):
        return None
    kind = "deterministic failures" if name == "no_retry_of_deterministic" else "failures"
    evidence = f"[what_if.{name}.affected {unit}] had retries after such a failure."
    if m.value(f"what_if.{name}.given_up", 0):
        evidence += (
            f" [what_if.{name}.given_up] of them succeeded in the end: their "
            f"[what_if.{name}.given_up_gpu_hours] GPU-h are subtracted."
        )
    return Action(f"Stop automatic retries of {kind}", evidence, *_effect(m, name, ""), MEASURED, "lost")


def _trial_action(m: Numbers, unit: str) -> Action | None:
    name = "trial_on_one_gpu"
    if not m.has(f"actions.{name}.gpu_hours"):
        return None
    evidence = (
        f"A trial of [what_if.{name}.trial_s] on one GPU would have caught [what_if.{name}.affected {unit}] "
        f"of [what_if.{name}.n]."
    )
    return Action("Run large jobs on one GPU first", evidence, *_effect(m, name, ""), MEASURED, "lost")


def _drain_action(m: Numbers) -> Action | None:
    if not m.value("lemons.lemons", 0) or not m.has("lemons.share_of_failures"):
        return None
    flagged = "[lemons.lemons] of [lemons.tested] nodes"
    verb = "has" if m["lemons.lemons"] == 1 else "have"
    evidence = f"{flagged} {verb} excess failures: [lemons.share_of_failures] of all failures."
    if m.has("actions.drain.gpu_hours"):
        evidence += " Assumes failures of average cost."
        return Action("Check or drain nodes with excess failures", evidence, *_effect(m, "drain"), UPPER, "nodes")
    effect = ("≤ [lemons.share_of_failures]", "of the failures")
    return Action("Check or replace nodes with excess failures", evidence, *effect, UPPER, "nodes")


def _requeue_action(m: Numbers) -> Action | None:
    saved = m.value("actions.requeue.saved_s", 0.0)
    if not m.has("ettr.by") or saved < MIN_SHARE_OF_RUN * m.value(f"ettr.{m['ettr.by']}.wall_s", 0.0) or not saved:
        return None
    method = f"ettr.{m['ettr.by']}"
    evidence = (
        f"Each of [{method}.interruptions] expected restarts waits [{method}.queue_s]. "
        "Requeue with priority, or keep spares."
    )
    effect = ("−[actions.requeue.saved_s]", f"of [{method}.wall_s], per run on {statement_rules.target(m)}")
    return Action("Let interrupted large runs restart without queueing", evidence, *effect, MODEL, "large-runs")


def _writes_action(m: Numbers) -> Action | None:
    if m.value("actions.writes.gpu_hours", 0.0) <= 0:
        return None
    run = statement_rules.target(m)
    evidence = f"From [ettr.assumed.checkpoint_write] (assumed) to [actions.writes.write_s], for one run on {run}."
    effect = ("[actions.writes.gpu_hours]", "GPU-h per week of work")
    return Action("Make checkpoint writes faster", evidence, *effect, MODEL, "large-runs")


def _format_not_worth(m: Numbers, name: str) -> str:
    key = _action_key(m, name)
    share_text = f", [actions.{key}.share]" if m.value(f"actions.{key}.share", 0.0) > 0 else ""
    return f"{_NAMES[name][1]} (net [actions.{key}.gpu_hours] GPU-h{share_text})"

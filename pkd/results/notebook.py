"""What a notebook shows of plans and runs: value, a table of the policy, and a picture.

A picture is SVG inside the cell: nothing is loaded, and its ink follows the page, light or dark. If
a label or a picture fails, because labels are the user's own code, the rest is still shown.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import TYPE_CHECKING

from pkd.results.markup import escape, table
from pkd.results.plots import plot_regret
from pkd.results.policy_plots import plot_policy
from pkd.results.svg import LIGHT, drawing, inline

if TYPE_CHECKING:
    from pkd.planning import Plan
    from pkd.results.run import Run

__all__ = ["show_plan", "show_run", "write_rules"]

MOST_LINES = 12  # of the table of a policy
MOST_STATES = 30  # of its picture
COLOURS = ";".join(f"--line-{i}:{colour}" for i, colour in enumerate(LIGHT, start=1))
STYLE = (
    f"<style>.pkd{{{COLOURS}}}.pkd svg{{width:100%;height:auto;max-width:44rem}}"
    ".pkd svg text{fill:currentColor}.pkd table{border-collapse:collapse}"
    ".pkd caption{text-align:left}.pkd td,.pkd th{padding:.1rem .7rem .1rem 0;text-align:left}"
    "</style>"
)


def show_plan(plan: Plan) -> str:
    """Value, the policy of the first step, and the picture of all steps."""
    name = escape(type(plan.compiled.model).__name__)
    said = (
        f"<p><b>Plan for {name}</b>: value {plan.value:.10g} over {plan.compiled.horizon} steps, "
        f"{escape(plan.meaning)}.</p>"
    )
    return _wrap(said, lambda: write_rules(plan), lambda: _draw_policy(plan))


def show_run(run: Run) -> str:
    """What a run has learned, its policy and its regret."""
    last, best = float(run.policy_values[-1]), run.optimal_value
    said = (
        f"<p><b>Run of {len(run.returns):,} episodes</b> with {escape(run.label)} "
        f"({run.guarantee}): the last policy earns {last:.7g} of {best:.7g}, regret "
        f"{float(run.regret[-1]):.6g}, {len(run.plans)} plans, {run.seconds:.2f} s.</p>"
    )
    policy = run.policy
    rules = (lambda: "") if policy is None else (lambda: write_rules(policy))
    return _wrap(said, rules, lambda: _draw_regret(run))


def _wrap(said: str, *parts: Callable[[], str]) -> str:
    shown = [said]
    for part in parts:
        try:
            shown.append(part())
        except Exception as problem:  # noqa: BLE001 - a cell must not fail for want of a picture
            shown.append(f"<p>not shown: {escape(str(problem))}</p>")
    return f'{STYLE}<div class="pkd">{"".join(shown)}</div>'


def write_rules(plan: Plan, most: int = MOST_LINES) -> str:
    """The rules of the first steps, with the model's labels; at most so many."""
    rules = list(islice(plan.rules(), most + 1))
    rows = [
        [
            str(rule.step),
            plan.label("x", rule.x),
            plan.label("y", rule.y),
            plan.label("action", rule.action),
            f"{rule.value:.7g}",
        ]
        for rule in rules[:most]
    ]
    headers = ["step", "x", "y", "action", "value"]
    kept = [i for i in range(5) if i not in (1, 2) or any(r[i] not in ("", "None") for r in rows)]
    more = "; plan.to_csv(path) writes all" if len(rules) > most else ""
    return table(
        [headers[i] for i in kept], [[row[i] for i in kept] for row in rows], f"The policy{more}"
    )


def _draw_policy(plan: Plan) -> str:
    states = min(plan.compiled.n_states, MOST_STATES)
    with drawing(7.0, 1.5 + 0.22 * states) as figure:
        plot_policy(plan, figure.subplots(), most=MOST_STATES)
        return inline(
            figure,
            "The best action of each state at each step.",
            f"plan {plan.compiled.fingerprint} {plan.value!r}",
        )


def _draw_regret(run: Run) -> str:
    with drawing(7.0, 3.0) as figure:
        plot_regret([run], ax=figure.subplots())
        says = f"Cumulative regret over episodes; it ends at {float(run.regret[-1]):.6g}."
        return inline(figure, says, f"run {run.label} {run.regret[-1]!r}")

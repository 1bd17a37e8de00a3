"""What a notebook shows of plans and runs: value, a table of the policy, and a picture.

A picture is SVG inside the cell: nothing is loaded. If a label or a picture fails, because labels
are the user's own code, the rest is still shown.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import TYPE_CHECKING, Any

from pkd.show.markup import Picture, Table, make_table, render
from pkd.show.plots import plot_regret
from pkd.show.policy_plots import plot_policy
from pkd.show.svg import drawing, inline

if TYPE_CHECKING:
    from pkd.planning.plan import Plan
    from pkd.results.run import Run

MOST_LINES = 12  # of the table of a policy
MOST_STATES = 30  # of its picture


def show_plan(plan: Plan) -> str:
    """Value, the policy of the first step, and the picture of all steps."""
    said = f": value {plan.value:.10g} over {plan.compiled.horizon} steps, {plan.meaning}."
    title = f"Plan for {type(plan.compiled.model).__name__}"
    return _show(title, said, rules=lambda: list_rows(plan), drawn=lambda: _draw_policy(plan))


def show_run(run: Run) -> str:
    """What a run has learned, its policy and its regret."""
    earned = (
        f"the last policy earns {float(run.policy_values[-1]):.7g} of {run.optimal_value:.7g}, "
        if run.regret_is == "exact"
        else ""
    )
    said = (
        f" with {run.label} ({run.guarantee}): {earned}{run.regret_is} regret "
        f"{float(run.regret[-1]):.6g}, {len(run.plans)} plans, {run.seconds:.2f} s."
    )
    policy = run.policy
    return _show(
        f"Run of {len(run.returns):,} episodes",
        said,
        rules=lambda: None if policy is None else list_rows(policy),
        drawn=lambda: _draw_regret(run),
    )


def _show(title: str, said: str, **parts: Callable[[], Any]) -> str:
    shown, problems = dict.fromkeys(parts), []
    for name, make in parts.items():
        try:
            shown[name] = make()
        except Exception as problem:  # noqa: BLE001 - a cell must not fail for want of a picture
            problems.append(str(problem))
    return render("notebook.html", title=title, said=said, problems=problems, **shown)


def list_rows(plan: Plan, most: int = MOST_LINES) -> Table:
    """The policy of the first steps, with the model's labels; at most `most` rows."""
    rows = list(islice(plan.rows(), most + 1))
    more = "; plan.to_csv(path) writes all" if len(rows) > most else ""
    shown = [plan.label_row(row, digits=7) for row in rows[:most]]
    return make_table(["step", "x", "y", "action", "value"], shown, f"The policy{more}")


def _draw_policy(plan: Plan) -> Picture:
    states = min(plan.compiled.n_states, MOST_STATES)
    with drawing(7.0, 1.5 + 0.22 * states) as figure:
        plot_policy(plan, figure.subplots(), most=MOST_STATES)
        drawn = inline(figure, f"plan {plan.compiled.fingerprint} {plan.value!r}")
    return Picture(drawn, "The best action of each state at each step.")


def _draw_regret(run: Run) -> Picture:
    with drawing(7.0, 3.0) as figure:
        plot_regret([run], ax=figure.subplots())
        drawn = inline(figure, f"run {run.label} {run.regret[-1]!r}")
    says = f"Cumulative regret over episodes; it ends at {float(run.regret[-1]):.6g}."
    return Picture(drawn, says)

"""What a model is made of: its sizes, its transition graph, whether it must be explored, and the
optimal policy.

The model is built again from the words of the command line that the files keep. What cannot be
built, is too large or is another model now is said in a sentence, and the page goes on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pkd.engine import compile
from pkd.limits import TooLargeError
from pkd.model import Law, ModelError
from pkd.model_words import find_model, model_arguments
from pkd.planning import make_plan
from pkd.report.content import Chapter
from pkd.report.transitions import draw_transitions
from pkd.results.markup import escape, table
from pkd.results.notebook import write_rules
from pkd.visits import exploration

if TYPE_CHECKING:
    from pkd.engine.compiled import Compiled

__all__ = ["write_structure"]

MOST_STATES = 20_000  # of a model that is built for a page
MOST_WORK = 5e6  # states that all sweeps of `exploration` may compute for a page
MOST_RULES = 40  # lines of the optimal policy
TOLERANCE = 1e-9  # relative: two optima of the same model


def write_structure(chapter: Chapter, place: int, *, trust: bool) -> str:
    """The sections about the model; trust: whether modules that the words name are imported."""
    try:
        return _describe(chapter, *_build(chapter, trust=trust), place)
    except TooLargeError:
        why = f"it has more than {MOST_STATES:,} states"
    except Exception as problem:  # noqa: BLE001 - a model is somebody's own code
        why = " ".join(str(problem).split()) or type(problem).__name__
    return f'<h3>The model</h3><p class="soft">Not shown: {escape(why)}.</p>'


def _build(chapter: Chapter, *, trust: bool) -> tuple[Compiled, Law]:
    """The model of the words; ModelError if there are none, or if they name code."""
    if not chapter.words:
        raise ModelError("it was given as an object, and the files do not say how it is made")
    args = model_arguments(chapter.words)
    word = args.words or args.model or ""
    if ":" in word and not trust:
        raise ModelError(f"{word} is code that the files name; --trust imports it")
    found = find_model(args)
    return compile(found.model, max_states=MOST_STATES), found.with_law()


def _describe(chapter: Chapter, compiled: Compiled, law: Law, place: int) -> str:
    truth = compiled.truth(law)
    plan = make_plan(compiled, truth.belief, truth)
    if abs(plan.value - chapter.optimum) > TOLERANCE * max(1.0, abs(chapter.optimum)):
        raise ModelError(
            f"its words make a model with the optimum {plan.value:.9g} now, and the runs had "
            f"{chapter.optimum:.9g}"
        )
    rules = f"<details><summary>The optimal policy, value {plan.value:.7g}</summary>"
    return (
        f"<h3>The model</h3>{_list_sizes(compiled)}"
        f"<p>{escape(_judge_exploration(compiled, law))}</p>"
        f"<details><summary>Its transition graph</summary>"
        f"{draw_transitions(compiled.model, law, str(place))}</details>"
        f"{rules}{write_rules(plan, MOST_RULES)}</details>"
    )


def _list_sizes(compiled: Compiled) -> str:
    graph = compiled.graph
    outcomes = max((len(one) for one in graph.outcomes), default=0)
    sizes = [
        ("|X|: values of x", len({*graph.layers.x, *graph.settled.x})),
        ("|Y|: values of y", graph.n_y),
        ("|Z|: unknown features", len(graph.features)),
        ("states (x, y)", compiled.n_states),
        ("most outcomes of a feature", outcomes),
        ("unknown rewards", len(graph.rewards)),
        ("horizon", graph.horizon),
    ]
    kept = [[name, f"{size:,}"] for name, size in sizes if size or name != "unknown rewards"]
    return table(["size", "how many"], kept, f"{type(compiled.model).__name__}, as it can occur")


def _judge_exploration(compiled: Compiled, law: Law) -> str:
    """The verdict of `pkd.exploration`, where it is quick."""
    graph = compiled.graph
    unknown = len(graph.features) + len(graph.rewards)
    if 2.0 * unknown * graph.horizon * compiled.n_states > MOST_WORK:
        return "Whether exploration is needed was not computed: pkd check --exploration does it."
    return str(exploration(compiled, law))

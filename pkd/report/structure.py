"""What a model is made of: its sizes, its transition graph, whether it must be explored, and the
optimal policy.

The model is built again from the words of the command line that the files keep. What cannot be
built, is too large or is another model now is said in a sentence, and the page goes on.
"""

from __future__ import annotations

import attrs

from pkd.certification.exploration import exploration
from pkd.engine import Compiled, compile
from pkd.explore.limits import TooLargeError
from pkd.model import Law, ModelError
from pkd.planning.plan import solve
from pkd.report.content import Chapter
from pkd.report.figures import draw_transitions
from pkd.show.markup import Picture, Table
from pkd.show.notebook import list_rows
from pkd.words.models import find_model, model_arguments

__all__ = ["Structure", "describe_model"]

MOST_STATES = 20_000  # of a model that is built for a page
MOST_WORK = 5e6  # states that all sweeps of `exploration` may compute for a page
MOST_ROWS = 40  # lines of the optimal policy
TOLERANCE = 1e-9  # relative: two optima of the same model


@attrs.frozen
class Structure:
    """What a page says about a model; why: in place of all the rest."""

    why: str = ""
    sizes: Table | None = None
    exploration: str = ""
    graph: Picture | None = None
    value: str = ""
    rules: Table | None = None


def describe_model(chapter: Chapter, place: int, *, trust: bool) -> Structure:
    """The model of a chapter; trust: whether modules that the words name are imported."""
    try:
        return _describe(chapter, *_build(chapter, trust=trust), place)
    except TooLargeError:
        return Structure(f"it has more than {MOST_STATES:,} states")
    except Exception as problem:  # noqa: BLE001 - a model is somebody's own code
        return Structure(" ".join(str(problem).split()) or type(problem).__name__)


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


def _describe(chapter: Chapter, compiled: Compiled, law: Law, place: int) -> Structure:
    truth = compiled.truth(law)
    plan = solve(compiled, truth)
    if abs(plan.value - chapter.optimum) > TOLERANCE * max(1.0, abs(chapter.optimum)):
        raise ModelError(
            f"its words make a model with the optimum {plan.value:.9g} now, and the runs had "
            f"{chapter.optimum:.9g}"
        )
    return Structure(
        sizes=_list_sizes(compiled),
        exploration=_judge_exploration(compiled, law),
        graph=draw_transitions(compiled.model, law, place),
        value=f"{plan.value:.7g}",
        rules=list_rows(plan, MOST_ROWS),
    )


def _list_sizes(compiled: Compiled) -> Table:
    graph = compiled.graph
    sizes = {
        "|X|: values of x": len({*graph.layers.x, *graph.settled.x}),
        "|Y|: values of y": graph.n_y,
        "|Z|: unknown features": len(graph.features),
        "states (x, y)": compiled.n_states,
        "most outcomes of a feature": max((len(one) for one in graph.outcomes), default=0),
        "unknown rewards": len(graph.rewards),
        "horizon": graph.horizon,
    }
    rows = [[name, f"{n:,}"] for name, n in sizes.items() if n or name != "unknown rewards"]
    return Table(["size", "how many"], rows, f"{type(compiled.model).__name__}, as it can occur")


def _judge_exploration(compiled: Compiled, law: Law) -> str:
    """The verdict of `pkd.exploration`, where it is quick."""
    graph = compiled.graph
    unknown = len(graph.features) + len(graph.rewards)
    if 2.0 * unknown * graph.horizon * compiled.n_states > MOST_WORK:
        return str(exploration(compiled))
    return str(exploration(compiled, law))

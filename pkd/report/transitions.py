"""The transition graph of a small model, drawn by networkx: which state can follow which.

A node is a state (x, y), or x alone where there are too many of these. An arrow is dashed where the
law of x' is known, and solid where it is unknown.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pkd.model import CHANCE, END, Known, Law, PartiallyKnownMDP
from pkd.results.svg import INK, PAPER, STAND_INS, drawing, inline

if TYPE_CHECKING:
    import networkx
    from matplotlib.axes import Axes

__all__ = ["draw_transitions", "find_transitions"]

MOST_NODES = 24  # of a drawing
MOST_STATES = 3000  # that are walked for one
LONGEST_LABEL = 18  # characters
WIDTH = 5.2  # inches
STAYS = "↺"
State = tuple[Any, Any]
Node = tuple[Any, ...]  # (x, y), or (x,)


def find_transitions(
    model: PartiallyKnownMDP, law: Law, most: int = MOST_NODES
) -> networkx.DiGraph[Node] | None:
    """The graph of states (x, y), else that of x alone; None if both have too many nodes.

    An edge has `unknown`: whether the law of x' is unknown on some move along it.

    >>> import pkd
    >>> flip = pkd.TabularMDP([[[0.5, 0.5]], [[0.0, 1.0]]], [[0.0], [1.0]], horizon=3)
    >>> list(find_transitions(flip.model(), flip.law()).edges)
    [((0, None), (0, None)), ((0, None), (1, None)), ((1, None), (1, None))]
    """
    import networkx

    states: networkx.DiGraph[Node] = networkx.DiGraph()
    shown: networkx.DiGraph[Node] = networkx.DiGraph()
    begin = model.start()
    waiting = deque(begin if isinstance(begin, Mapping) else [begin])
    found = set(waiting)
    while waiting:
        state = waiting.popleft()
        states.add_node(state)
        shown.add_node(state[:1])
        for after, unknown in _follow(model, law, state):
            for graph, one, other in ((states, state, after), (shown, state[:1], after[:1])):
                before = graph.has_edge(one, other) and graph.edges[one, other]["unknown"]
                graph.add_edge(one, other, unknown=unknown or before)
            if after not in found:
                found.add(after)
                waiting.append(after)
        if len(found) > MOST_STATES or min(len(states), len(shown)) > most:
            return None
    if len(states) <= most:
        return states
    return shown if 1 < len(shown) <= most else None


def draw_transitions(model: PartiallyKnownMDP, law: Law, salt: str) -> str:
    """The drawing as a <figure>, or a sentence where the model is too large for one."""
    graph = find_transitions(model, law)
    if graph is None:
        return (
            f'<p class="soft">It has more than {MOST_NODES} states, which no drawing could '
            "show.</p>"
        )
    import networkx

    pairs = all(len(node) == 2 for node in graph)
    place = networkx.circular_layout(graph)
    if len(graph) > 2:
        place = networkx.kamada_kawai_layout(graph, pos=place)
    with drawing(WIDTH, 1.6 + 0.11 * len(graph)) as figure:
        ax = figure.subplots()
        _draw_arrows(ax, graph, place)
        for node, (x, y) in place.items():
            stays = f" {STAYS}" if graph.has_edge(node, node) else ""
            ax.text(
                x, y, _name(model, node) + stays, ha="center", va="center", fontsize=8,
                bbox={"facecolor": PAPER, "edgecolor": "none", "pad": 1.5},
            )  # fmt: skip
        ax.margins(0.15, 0.2)
        ax.axis("off")
        says = f"Transition graph: {len(graph)} states and {graph.number_of_edges()} transitions."
        drawn = inline(figure, says, f"transitions {salt}")
    what = "a state (x, y)" if pairs else "an x; the y are left out"
    return (
        f"<figure>{drawn}<figcaption>Which state can follow which, whatever is done. Each name is "
        f"{what}; {STAYS} marks one that can stay. Solid arrows: the law is unknown. Dashed: it is "
        "known.</figcaption></figure>"
    )


def _draw_arrows(ax: Axes, graph: networkx.DiGraph[Node], place: Mapping[Any, Any]) -> None:
    """Arrows between different states; a loop would hide the name of its state."""
    import networkx

    for unknown, style, colour in ((True, "-", STAND_INS[0]), (False, "--", INK)):
        edges = [
            (one, other)
            for one, other, data in graph.edges(data=True)
            if one != other and data["unknown"] is unknown
        ]
        networkx.draw_networkx_edges(
            graph, place, edgelist=edges, ax=ax, style=style, edge_color=colour, width=0.8,
            node_size=600, connectionstyle="arc3,rad=0.12", arrowsize=9,
        )  # fmt: skip


def _follow(model: PartiallyKnownMDP, law: Law, state: State) -> Iterator[tuple[State, bool]]:
    """Every state that can come next, and whether its law is unknown."""
    choices = model.actions(*state)
    if choices is END:
        return
    for a in (None,) if choices is CHANCE else choices:
        for p, y, z in model.step(*state, a):
            known = isinstance(z, Known)
            row = dict(z.law) if known else law(z) if callable(law) else law[z]
            for x, q in row.items():
                if p > 0 and q > 0:
                    yield (x, y), not known


def _name(model: PartiallyKnownMDP, node: Node) -> str:
    words = [label(part) for label, part in zip((model.x_label, model.y_label), node, strict=False)]
    name = ", ".join(word for word in words if word not in ("", "None")) or str(node)
    return name if len(name) <= LONGEST_LABEL else f"{name[: LONGEST_LABEL - 1]}…"

"""The figures of a page: regret and values of each model, and the transition graph of a small one.

A page holds many figures, so a curve has as many points as a screen shows. In the graph a node is a
state (x, y), or x alone where there are too many of these. An arrow is dashed where the law of x'
is known, and solid where it is unknown.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from pkd.model import CHANCE, END, Known, Law, PartiallyKnownMDP
from pkd.report.content import Chapter
from pkd.show.intervals import FEWEST
from pkd.show.markup import Picture
from pkd.show.plots import (
    COLOURS,
    FAR_APART,
    Line,
    Style,
    draw_lines,
    label_agent,
    plot_certified,
    plot_regret,
    plot_value,
    plot_values,
)
from pkd.show.svg import drawing, inline

if TYPE_CHECKING:
    import networkx
    from matplotlib.axes import Axes

__all__ = ["draw_axis", "draw_chapter", "draw_transitions", "find_transitions"]

WIDTH = 5.2  # inches: its letters can be read where the page is 400 pixels wide
POINTS = 160  # of a curve
MOST_NODES = 24  # of a drawing
MOST_STATES = 3000  # that are walked for one
LONGEST_LABEL = 18  # characters
STAYS = "↺"
State = tuple[Any, Any]
Node = tuple[Any, ...]  # (x, y), or (x,)


def draw_chapter(chapter: Chapter, styles: Mapping[str, Style], place: int) -> Picture:
    """The figure of one model; styles: of the agents; place: its number on the page."""
    groups = chapter.groups
    finals = [float(np.mean(group.regrets)) for group in groups]
    beliefs = len(groups) == 1 and all(run.upper_values.size for run in groups[0].runs)
    with drawing(WIDTH, 5.4 + 0.17 * len(groups)) as figure:
        upper, lower = figure.subplots(2, 1)
        for group in groups:
            label = label_agent(group.agent, group.runs)
            plot_regret(group.runs, upper, points=POINTS, label=label, **styles[group.agent])
        if min(finals) > 0 and max(finals) > FAR_APART * min(finals):
            upper.set_yscale("log")
        upper.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0))
        if beliefs:
            plot_values(groups[0].runs, lower, styles[groups[0].agent]["color"], POINTS)
            lower.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3)
        else:
            for group in groups:
                plot_value(group.runs, lower, points=POINTS, **styles[group.agent])
            plot_certified({group.agent: group.runs for group in groups}, styles, lower, POINTS)
            lower.axhline(chapter.optimum, color="0.4", linewidth=1, linestyle=":")
            lower.set(xlabel="episode", ylabel="value of the policy in use", xscale="log")
        drawn = inline(figure, f"chapter {place}")
    ends = "; ".join(
        f"{group.agent}: {final:.6g}" for group, final in zip(groups, finals, strict=True)
    )
    band = ""
    if any(len(group.runs) >= FEWEST for group in groups):
        band = " A line is the mean over seeds, its band the 95% interval of the mean."
    below = "what the policy in use is worth, and the optimum"
    if any(group.runs[0].guarantee == "certified" for group in groups):
        below += "; its band is where the certified rule proves the optimum to be"
    if beliefs:
        below = "what the plans believed, what their policies are worth, and the optimum"
    return Picture(
        drawn,
        f"Two panels over episodes. Cumulative regret ends at {ends}. Below, values of policies; "
        f"the optimum is {chapter.optimum:.6g}.",
        f"Above: cumulative regret against the exact optimum.{band} Below: {below}.",
    )


def draw_axis(lines: Mapping[str, Line], x: str, at: int) -> Picture:
    """Regret against a parameter of a sweep."""
    with drawing(WIDTH, 4.0) as figure:
        draw_lines({"": lines}, x, at, figure=figure)
        drawn = inline(figure, f"axis {x}")
    ends = "; ".join(f"{name}: {line.say(line.x[-1])}" for name, line in lines.items())
    return Picture(drawn, f"Regret after {at:,} episodes against {x}. At its last value {ends}.")


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


def draw_transitions(model: PartiallyKnownMDP, law: Law, place: int) -> Picture:
    """The drawing; one without an <svg> says why there is none."""
    try:
        import networkx
    except ImportError:
        return Picture("", "A drawing of its states needs the extra pkd[graphs].")
    graph = find_transitions(model, law)
    if graph is None:
        return Picture("", f"It has more than {MOST_NODES} states, which no drawing could show.")
    pairs = all(len(node) == 2 for node in graph)
    where = networkx.circular_layout(graph)
    if len(graph) > 2:
        where = networkx.kamada_kawai_layout(graph, pos=where)
    with drawing(WIDTH, 1.6 + 0.11 * len(graph)) as figure:
        ax = figure.subplots()
        _draw_arrows(ax, graph, where)
        for node, (x, y) in where.items():
            stays = f" {STAYS}" if graph.has_edge(node, node) else ""
            ax.text(
                x, y, _name(model, node) + stays, ha="center", va="center", fontsize=8,
                bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.5},
            )  # fmt: skip
        ax.margins(0.15, 0.2)
        ax.axis("off")
        drawn = inline(figure, f"transitions {place}")
    what = "a state (x, y)" if pairs else "an x; the y are left out"
    return Picture(
        drawn,
        f"Transition graph: {len(graph)} states and {graph.number_of_edges()} transitions.",
        f"Which state can follow which, whatever is done. Each name is {what}; {STAYS} marks one "
        "that can stay. Solid arrows: the law is unknown. Dashed: it is known.",
    )


def _draw_arrows(ax: Axes, graph: networkx.DiGraph[Node], place: Mapping[Any, Any]) -> None:
    """Arrows between different states; a loop would hide the name of its state."""
    import networkx

    for unknown, style, colour in ((True, "-", COLOURS[0]), (False, "--", "black")):
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

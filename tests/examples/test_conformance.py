"""Every shipped model passes every check, agrees with its true MDP, and can be drawn."""

from __future__ import annotations

import ast
import inspect
import io
import textwrap
import tokenize

import pytest

import pkd
from tests.examples.worlds import shipped

SHIPPED = shipped()
DOMAINS = [name for name in SHIPPED if name != "tank"]  # the model of the tank is the core's own
MODEL_CODE_LIMIT = 40


def code_lines(thing: type) -> int:
    """Lines of code of a class, without docstrings.

    A statement that is broken over several lines counts once.
    """
    source = textwrap.dedent(inspect.getsource(thing))
    docstrings = sum(
        ast.get_docstring(node) is not None
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.ClassDef | ast.FunctionDef)
    )
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    return sum(token.type == tokenize.NEWLINE for token in tokens) - docstrings


@pytest.mark.parametrize("name", SHIPPED)
def test_a_shipped_model_agrees_with_its_true_mdp(name: str) -> None:
    problem, truth = SHIPPED[name]
    pkd.check_model(problem.model(), problem.law(), truth=truth)


@pytest.mark.parametrize("name", DOMAINS)
def test_no_domain_needs_more_than_forty_lines_of_model_code(name: str) -> None:
    kind = type(SHIPPED[name][0].model())
    if kind.__module__.startswith("pkd_examples"):  # others use a transformer of the core
        assert code_lines(kind) <= MODEL_CODE_LIMIT


def test_the_shortest_models_need_about_a_dozen_lines() -> None:
    assert min(code_lines(type(problem.model())) for problem, _ in SHIPPED.values()) <= 16


@pytest.mark.parametrize("name", DOMAINS)
def test_a_picture_names_what_its_axes_show(name: str) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    problem, _ = SHIPPED[name]
    ax = problem.picture(pkd.plan(problem.model(), problem.law()))
    try:
        assert ax.get_title()
        assert ax.get_xlabel()
        ax.figure.canvas.draw()
    finally:
        pyplot.close(ax.figure)


@pytest.mark.parametrize("name", SHIPPED)
def test_the_labels_of_different_states_differ(name: str) -> None:
    problem, _ = SHIPPED[name]
    model, plan = problem.model(), pkd.plan(problem.model(), problem.law())
    for h in range(1, model.horizon + 1):
        states = list(plan.states(h))
        assert len({(model.x_label(x), model.y_label(y)) for x, y in states}) == len(states)


@pytest.mark.parametrize("name", DOMAINS)
def test_a_problem_prints_as_one_short_line(name: str) -> None:
    problem, _ = SHIPPED[name]
    model = problem.model()
    text = f"<Problem {problem.name}: {type(model).__name__}, horizon {model.horizon}>"
    assert repr(problem) == str(problem) == text
    assert len(text) <= 80

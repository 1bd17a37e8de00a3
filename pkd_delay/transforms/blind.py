"""What it costs to ignore that states come late or go missing, or that actions act late.

`Blind` follows a plan for a base as if its state in a transformed model were the current one and
every action acted at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pkd import ModelError, PartiallyKnownMDP, transforms
from pkd_delay.augmented import Augmented

if TYPE_CHECKING:
    import pkd

__all__ = ["Blind"]

Layer = Augmented | transforms.Transformed


def _peel(layers: list[Layer], x: Any, y: Any) -> tuple[Any, Any, int]:
    """(x, y) of the base inside transformers, and how many actions are newer than that state."""
    age = 0
    for layer in layers:
        if isinstance(layer, Augmented):
            x, y, queue, _ = layer.read(x, y)
            age += len(queue or ())
        else:
            age += layer.count_unseen(y)
            y = y.y
    return x, y, age


def _find_layers(model: PartiallyKnownMDP, base: PartiallyKnownMDP) -> list[Layer]:
    """The transformers of a model that are not those of its base, the outermost first."""
    layers, inside = _list_layers(model), _list_layers(base)
    return layers[: len(layers) - len(inside)]


def _list_layers(model: PartiallyKnownMDP) -> list[Layer]:
    layers = []
    while isinstance(model, Layer):
        layers.append(model)
        model = model.base
    return layers


class Blind:
    """A policy that follows a plan for the base as if nothing were late or missing.

    `model` is a transformed one, whose base the plan is for. If the base cannot be in the shown
    state at step h, the plan is asked for the step at which the base was there, or for the last one
    before it.

    >>> import pkd, pkd_delay
    >>> from pkd_delay.models.tables import two_state_chain
    >>> late = pkd_delay.DelayedMDP.constant(two_state_chain(stay=0.1), 1)
    >>> blind = Blind(late.known(), pkd.plan(late.mdp))
    >>> round(pkd.evaluate(late, blind), 10)  # a state that moves on with .9
    1.9
    """

    def __init__(self, model: PartiallyKnownMDP, plan: pkd.Plan) -> None:
        self.plan, self._layers = plan, _find_layers(model, plan.compiled.model)
        self._known: dict[tuple[int, Any, Any, int], Any] = {}

    def __call__(self, h: int, x: Any, y: Any) -> Any:
        base_x, base_y, age = _peel(self._layers, x, y)
        key = (h, base_x, base_y, age)
        if key not in self._known:
            self._known[key] = self._find(*key)
        return self._known[key]

    def _find(self, h: int, x: Any, y: Any, age: int) -> Any:
        for step in (h, *range(h - age, 0, -1)):
            try:
                return self.plan.action(step, x, y)
            except ModelError:
                continue
        raise ModelError(f"the plan has no action in (x={x!r}, y={y!r}) at step {h} or before it")

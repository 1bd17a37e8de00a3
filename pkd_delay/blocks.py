"""The augmented model with its queues left out: what can occur, in blocks of all queues of one length.

How an augmented state moves depends on its queue only through the length and, where the base moves or an arrival is due, the oldest
action. So one queue for each oldest action stands for all: the model is asked for its moves, and every other queue moves alike. A *block*
is an augmented y with the length of its queue in place of the queue; a *node* is an augmented x with a block.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING, Any, NamedTuple

from pkd import CHANCE, END, Known, ModelError, UnknownReward, check_model, sure
from pkd_delay.augmented import TRAN

if TYPE_CHECKING:
    from pkd.model import Branch
    from pkd_delay.augmented import Augmented

__all__ = ["DECIDES", "ENDS", "OVER", "Arm", "Block", "Node", "Role", "Walk", "Way"]

Block = Any  # an augmented y whose queue is a length, or None where all is over
Node = tuple[Any, Block]
OVER = "over"  # the block of one column to which every END leads
DECIDES, ENDS = 0, -1  # what a state of the base is; a CHANCE state is its depth, from 1
PROBABILITY_SLACK = 1e-9


class Way(NamedTuple):
    """One branch of a move."""

    p: float
    z: Any
    share: float  # in the union bound; not a number where the law is known


class Arm(NamedTuple):
    """A move of a node with one oldest action."""

    reward: float | UnknownReward
    ways: dict[tuple[Block, int], Way]  # by block and place in it, from the first queue with this oldest action


class Role(NamedTuple):
    """What a node does; nodes of one role differ only in the base's x."""

    block: Block
    y: Any  # of the base
    counter: int
    kind: int  # DECIDES, ENDS, or the depth of a CHANCE state of the base

    @property
    def decides(self) -> bool:
        return self.kind == DECIDES and self.counter >= 0

    @property
    def ends(self) -> bool:
        return self.kind == ENDS or (self.kind == DECIDES and self.block.queue is None)

    @property
    def rests(self) -> bool:
        """Whether the base stays where it is."""
        return self.kind == DECIDES and self.counter != TRAN

    @property
    def splits(self) -> bool:
        """Whether moves depend on the oldest action."""
        return self.kind == DECIDES and bool(self.block.queue)


class Walk:
    """Everything that can be reached within the horizon, in the layers and in the settlement."""

    def __init__(self, model: Augmented) -> None:
        self.model, self.actions = model, model.facts.actions
        self.nodes: list[Node] = []
        self.outcomes: dict[Any, tuple[Any, ...]] = {}  # of each unknown feature that can occur
        self._index: dict[Node, int] = {}
        self._code = {a: i for i, a in enumerate(self.actions)}
        self._depths = _depths(model)
        self._deepest = max(self._depths.values(), default=0)
        self._arms: dict[tuple[Node, bool], list[list[Arm]]] = {}
        self._after: dict[tuple[int, bool], list[int]] = {}
        self._landed: dict[tuple[tuple[Any, ...], Block], list[int]] = {}
        start = model.start()
        self.start = [(state, float(p)) for state, p in start.items() if p > 0] if isinstance(start, Mapping) else [(start, 1.0)]
        self.layers: set[int] = set()
        self.early: set[int] = set()  # decisions before the last one
        self.last: set[int] = set()  # decisions at the last step
        self._walk({self._number((x, self.place(y)[0])) for (x, y), _ in self.start})
        self.settled = self._closed(self._image(self.last, settling=True), settling=True)

    # -- blocks and roles ----------------------------------------------------------------------------------------------------------

    def size(self, block: Block) -> int:
        """How many queues a block has."""
        return 1 if block == OVER else int(len(self.actions) ** (block.queue or 0))

    def place(self, y: Any) -> tuple[Block, int]:
        """The block of an augmented y, and where its queue stands in it: the oldest action is most significant."""
        if y.queue is None:
            return y, 0
        code = 0
        for a in y.queue:
            code = code * len(self.actions) + self._code[a]
        return y._replace(queue=len(y.queue)), code

    def name(self, block: Block, code: int) -> Any:
        """The inverse of `place`."""
        if block.queue is None:
            return block
        queue: list[Any] = []
        for _ in range(block.queue):
            code, a = divmod(code, len(self.actions))
            queue.append(self.actions[a])
        return block._replace(queue=tuple(reversed(queue)))

    def role(self, node: Node, *, settled: bool) -> Role:
        x, y, n, counter = self.model.read(*node)
        kind = self.model.base.actions(x, y)
        if kind is CHANCE:
            return Role(node[1], y, counter, self._depths[settled and n is None, (x, y)])
        return Role(node[1], y, counter, ENDS if kind is END else DECIDES)

    def level(self, role: Role) -> int:
        """CHANCE nodes lead only to lower levels: trans to shorter queues, the base's own chances to less deep ones and to shown states."""
        if role.ends or role.decides:
            return 0
        return (role.block.queue or 0) * (self._deepest + 2) + (role.kind - int(role.counter == TRAN))

    # -- moves ---------------------------------------------------------------------------------------------------------------------

    def arms(self, node: Node, *, settling: bool) -> list[list[Arm]]:
        """The arms of a node for each oldest action; once where it does not matter.

        Of a decision with a queue only the first: the others differ in the last place of the queue and in nothing else.
        """
        if (node, settling) not in self._arms:
            self._arms[node, settling] = self._asked(node, settling=settling)
        return self._arms[node, settling]

    def _asked(self, node: Node, *, settling: bool) -> list[list[Arm]]:
        x, block = node
        role = self.role(node, settled=settling)
        if role.ends:
            return [[Arm(self.model.final(x, block), {(OVER, 0): Way(1.0, sure(x), math.nan)})]]
        size, step = self.size(block), self.model.last_step if settling else self.model.step
        names = [self.name(block, code) for code in range(0, size, size // len(self.actions) if role.splits else size)]
        actions = (None,) if not role.decides else self.actions[:1] if role.splits else self.actions
        return [[self._arm(x, y, a, step) for a in actions] for y in names]

    def _arm(self, x: Any, y: Any, a: Any, step: Callable[[Any, Any, Any], Iterable[Branch]]) -> Arm:
        ways: dict[tuple[Block, int], Way] = {}
        for p, y_next, z in step(x, y, a):
            if p > 0:
                place = self.place(y_next)
                before = ways.get(place)
                share = math.nan if isinstance(z, Known) else self.model.share(z, y_next)
                ways[place] = Way(float(p) if before is None or before.z != z else before.p + float(p), z, share)
        reward = self.model.reward(x, y, a)
        whole = abs(math.fsum(way.p for way in ways.values()) - 1) <= PROBABILITY_SLACK  # less also where one y' has two features
        if not whole or not (isinstance(reward, UnknownReward) or math.isfinite(reward)):
            check_model(self.model.base)
            raise ModelError(f"the move from x={x!r}, y={y!r} by {a!r} has the branches {ways!r} and pays {reward!r}")
        return Arm(reward, ways)

    def _successors(self, i: int, *, settling: bool) -> list[int]:
        if (i, settling) not in self._after:
            arms = (arm for row in self.arms(self.nodes[i], settling=settling) for arm in row)
            ways = ((block, way.z) for arm in arms for (block, _), way in arm.ways.items() if block != OVER)
            self._after[i, settling] = list({j for block, z in ways for j in self._landings(z, block)})
        return self._after[i, settling]

    def _landings(self, z: Any, block: Block) -> list[int]:
        if isinstance(z, Known):
            states = tuple(x for x, p in z.law if p > 0)
        else:
            if z not in self.outcomes:
                self.outcomes[z] = tuple(self.model.outcomes(z))
            states = self.outcomes[z]
        if (states, block) not in self._landed:
            self._landed[states, block] = [self._number((x, block)) for x in states]
        return self._landed[states, block]

    def _number(self, node: Node) -> int:
        if node not in self._index:
            self._index[node] = len(self.nodes)
            self.nodes.append(node)
        return self._index[node]

    # -- layers --------------------------------------------------------------------------------------------------------------------

    def _walk(self, starts: set[int]) -> None:
        """While layers only grow, what follows is asked of the new nodes alone."""
        layer = fresh = self._closed(starts, settling=False)
        grows = False
        for _ in range(self.model.horizon - 1):
            self.layers |= layer
            image = self._closed(self._image(fresh, settling=False), settling=False)
            layer, before = layer | image if grows else image, layer
            grows = before <= layer
            fresh = layer - before if grows else layer
            if not fresh:
                break
        self.early = {i for i in self.layers if self._decides(i)}
        self.layers |= layer
        self.last = {i for i in layer if self._decides(i)}

    def _image(self, layer: set[int], *, settling: bool) -> set[int]:
        """Where one action leads; an END stays, which keeps layers growing."""
        reached = {i for i in layer if self.model.actions(*self.nodes[i]) is END}
        for i in sorted(layer):
            if self._decides(i):
                reached.update(self._successors(i, settling=settling))
        return reached

    def _closed(self, layer: set[int], *, settling: bool) -> set[int]:
        """The nodes with all that their chance moves lead to."""
        closed, todo = set(layer), sorted(layer)
        for i in todo:  # the list grows while it is read
            if self.model.actions(*self.nodes[i]) is CHANCE:
                found = [j for j in self._successors(i, settling=settling) if j not in closed]
                closed.update(found)
                todo.extend(found)
        return closed

    def _decides(self, i: int) -> bool:
        kind = self.model.actions(*self.nodes[i])
        return kind is not CHANCE and kind is not END


def _depths(model: Augmented) -> dict[tuple[bool, Any], int]:
    """How many of the base's CHANCE states may follow each other from each of them on, by `step` and by `last_step`."""
    onward = {(last, state): [(last, other) for other in found] for (last, state), found in model.facts.chances.items()}
    depths: dict[tuple[bool, Any], int] = {}
    try:
        for key in TopologicalSorter(onward).static_order():
            depths[key] = 1 + max((depths[other] for other in onward[key]), default=0)
    except CycleError:
        check_model(model.base)
        raise
    return depths

"""The problems that the shipped studies name."""

from __future__ import annotations

import pytest

import pkd
from pkd.cli.experiment_file import find_file, read_experiment
from pkd_delay.theory.bounds import DelaySizes
from pkd_delay.theory.hard import InstancePrior
from pkd_delay.theory.studied import Board, board, hard_instance


def test_a_hard_instance_has_the_optimum_of_its_closed_form() -> None:
    sizes = DelaySizes(52, 2, 32, max_delay=2, branching=4)
    drawn = InstancePrior(sizes, 18 * sizes.lower_bound(3000).scale, 2).draw(5)
    found = pkd.plan(hard_instance(delay=2, multiple=18, seed=5)).value
    assert found == pytest.approx(drawn.optimal_value, abs=1e-12)


def test_counts_per_augmented_state_change_the_features_and_not_the_optimum() -> None:
    shared, apart = hard_instance(2, multiple=18), hard_instance(2, multiple=18, shared=False)
    assert pkd.plan(*apart).value == pytest.approx(pkd.plan(shared).value, abs=1e-12)
    assert len(pkd.compile(apart[0]).features) > len(pkd.compile(shared.known()).features)


def test_a_board_has_one_law_for_each_group_and_one_feature_for_each_part() -> None:
    made, law = board(states=8, groups=2, parts=4)
    assert law((1, 0)) == law((1, 3)) != law((0, 0))
    assert len(pkd.compile(made).features) == 8


def test_cutting_the_groups_of_a_board_leaves_its_optimum() -> None:
    whole, cut = (pkd.plan(*board(states=8, parts=parts, seed=3)).value for parts in (1, 4))
    assert whole == pytest.approx(cut, abs=1e-12)


def test_an_unknown_law_has_more_to_learn_with_every_longer_wait() -> None:
    grid, _ = read_experiment(find_file("study_delay_law"))
    features = {one.label: len(one.build().compiled.features) for one in grid.models}
    told, hidden = (
        [features[f"random MDP instance=0 W={w} told={what}"] for w in (1, 2)]
        for what in ("law", "nothing")
    )
    assert told == [12, 12]  # S A
    assert 12 < hidden[0] < hidden[1]


def test_bad_sizes_are_refused() -> None:
    with pytest.raises(pkd.ModelError, match="2 findings"):
        Board(states=0, parts=0)
    with pytest.raises(pkd.ModelError, match="multiple is 0; expected a number > 0"):
        hard_instance(multiple=0)

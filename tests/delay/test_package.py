"""The names that users type are there, and nothing else is public."""

import importlib
import subprocess
import sys

import pytest

import pkd_delay

THEORY = ["hard", "l1", "pomdp", "sat"]


@pytest.mark.parametrize("name", pkd_delay.__all__)
def test_every_public_name_exists(name):
    assert getattr(pkd_delay, name) is not None


@pytest.mark.parametrize("name", THEORY)
def test_the_theory_is_an_attribute_of_the_package(name):
    assert name in pkd_delay.__all__
    assert getattr(pkd_delay, name) is importlib.import_module(f"pkd_delay.theory.{name}")


def test_the_theory_is_importable_from_the_package_in_a_fresh_interpreter():
    code = f"from pkd_delay import {', '.join(THEORY)}; print(hard.code_mdp([0.5]).optimal_value)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "0.75"


def test_a_name_that_is_not_there_is_refused():
    with pytest.raises(AttributeError, match="has no attribute 'blocks'"):
        _ = pkd_delay.blocks

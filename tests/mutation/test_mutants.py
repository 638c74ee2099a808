"""Tests that the mutations in equivalent.toml still exist."""

from __future__ import annotations

import ast
import runpy
from pathlib import Path

import pytest
from mutation.mutants import equivalents, mutants

ROOMS = runpy.run_path(str(Path(__file__).with_name("__main__.py")))["ROOMS"]
PACKAGE = Path(__file__).parents[2] / "src" / "anaphora"


def changes(source: str) -> list[str]:
    return [mutant.change for mutant in mutants(ast.parse(source))]


def test_every_operator_number_condition_and_argument_is_changed() -> None:
    source = "def f(x: int = 1) -> int:\n    return min(x, key=2) + 3 if x < 4 else -x"
    assert set(changes(source)) >= {
        "1 -> 2", "2 -> 3", "3 -> 4", "x < 4 -> x <= 4", "-x -> x", "min -> max", "min(x, key=2) -> min(x)",
        "min(x, key=2) + 3 -> min(x, key=2) - 3",
    }  # fmt: skip
    assert not any("int" in change.split() for change in changes("x: int = int"))


@pytest.mark.parametrize("file", ROOMS)
def test_every_equivalent_change_is_one_of_the_code_as_it_is(file: str) -> None:
    source = (PACKAGE / file).read_text(encoding="utf-8")
    every = list(mutants(ast.parse(source)))
    for equivalent in equivalents(file):
        assert any(equivalent.names(mutant, source.splitlines()) for mutant in every), equivalent
        assert len(equivalent.reason) > 20


@pytest.mark.parametrize("file", ROOMS)
def test_a_mutant_leaves_the_tree_as_it_was(file: str) -> None:
    tree = ast.parse((PACKAGE / file).read_text(encoding="utf-8"))
    before = ast.dump(tree)
    for mutant in list(mutants(tree))[::20]:
        mutant.compiled(tree, PACKAGE / file)
    assert ast.dump(tree) == before

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from anaphora.base.errors import UserError
from anaphora.explain.calculation import walk_through_calculation
from anaphora.explain.matrices import MAX_TOKENS, load_calculation

TWO = "X: [[1, 0], [0, 1]]\n"


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    return tmp_path / "mine.yaml"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("W_Q: [[1, 0], [0, 1]]", "give either X"),
        (TWO + "Q: [[1, 0]]", "give either X"),
        (TWO + "W_Q: [[1, 0], [0, 1], [1, 1]]", r"W_Q is 3 x 2; expected 2 rows, one for each column of X \(2 x 2\)"),
        (TWO + "W_Q: [[1, 0], [0, 1]]\nW_K: [[1], [0]]", r"W_K is 2 x 1; expected 2 columns, as W_Q \(2 x 2\)"),
        (TWO + "W_O: [[1]]", "W_O is 1 x 1; expected 2 rows"),
        ("Q: [[1, 2]]\nK: [[1, 2]]", "V is missing"),
        ("Q: [[1, 2]]\nK: [[1]]\nV: [[1]]", r"K is 1 x 1; expected 2 columns, as Q \(1 x 2\)"),
        ("Q: [[1]]\nK: [[1]]\nV: [[1], [2]]", r"V is 2 x 1; expected 1 row, one for each row of K"),
        ("Q: [[1]]\nK: [[1]]\nV: [[1]]\nW_V: [[1]]", "W_V: projections need X"),
        (TWO + "C: [[1, 0]]", "W_K is missing; keys are made from C"),
        (TWO + "C: [[1]]\nW_K: [[1, 0], [0, 1]]", r"C is 1 x 1; expected 2 columns, as X \(2 x 2\) has"),
        ("Q: [[1]]\nK: [[1]]\nV: [[1]]\nC: [[1]]", "C is the sequence that X reads: give X"),
        ("X: [[1, 2], [3]]", "X: row 1 has 1 number; expected 2, as in row 0"),
        ("X: [[1, a]]", "X: row 0, column 1 is 'a'; expected a finite number"),
        ("X: [[1, .nan]]", "X: row 0, column 1 is nan; expected a finite number"),
        ("X: [[1, 1.0e200]]", "expected at most 1e100"),
        ("X: [[1, true]]", "is True; expected a finite number"),
        ("X: 3", "X must be a list of rows"),
        ("X: []", "X must be a list of rows"),
        (f"X: {[[1]] * (MAX_TOKENS + 1)}", "at most 96 tokens"),
        (TWO + "tokens: [a]", r"tokens \(1 entries\) must be a list of 2 labels"),
        (TWO + "heads: 3", r"heads \(3\) must divide the 2 features of the queries"),
        (TWO + "heads: 0", r"heads \(0\) must be a whole number"),
        (TWO + "scale: 2", r"scale \(2\) must be true or false"),
        (TWO + "row: 7", r"row \('7'\) must be one of x1, x2, or a number from 0 to 1"),
        (TWO + "Y: [[1]]", "unknown field Y; allowed: X, C, W_Q"),
        (TWO + "sentence: {text: she}", "unknown field sentence"),
        (TWO + "slips: [{step: output}]", "must hold step, published and right"),
        (TWO + "notes: Hello there", r"notes \('Hello there'\) must be a list of texts"),
        (TWO + "title: [a]", r"title \(\['a'\]\) must be text"),
        ("- 1", "must hold matrices by name"),
        ("X: [[1", "not readable as YAML"),
        ("X: !!python/object/apply:os.getcwd []", "not readable as YAML"),
        ("X: ${nothing.here}", "X must be a list of rows"),
    ],
)
def test_what_does_not_fit_is_reported_with_file_field_shape_and_what_was_expected(
    content: str, message: str, mine: Path
) -> None:
    mine.write_text(content, encoding="utf-8")
    with pytest.raises(UserError, match=message) as error:
        load_calculation(mine, "en")
    assert str(error.value).startswith(f"{mine}: ") and "\n" not in str(error.value)


def test_a_file_that_is_not_there_is_reported(mine: Path) -> None:
    with pytest.raises(UserError, match=r"mine.yaml: there is no such file"):
        load_calculation(mine, "en")


def test_a_slip_at_a_step_that_does_not_happen_is_reported(mine: Path) -> None:
    mine.write_text(TWO + "scale: false\nslips: [{step: scale, published: a, right: b}]", encoding="utf-8")
    with pytest.raises(UserError, match="step 'scale' must be one of inputs, queries"):
        walk_through_calculation(load_calculation(mine, "en"))


def test_words_may_be_given_once_or_by_language(mine: Path) -> None:
    mine.write_text(
        TWO + "title: {en: Mine, zh: 我的}\ntokens: {en: [a, b], zh: [甲, 乙]}\nabout: same\n", encoding="utf-8"
    )
    english, chinese = (load_calculation(mine, language) for language in ("en", "zh"))
    assert (english.title, english.tokens, english.about) == ("Mine", ("a", "b"), "same")
    assert (chinese.title, chinese.tokens, chinese.about) == ("我的", ("甲", "乙"), "same")


def test_a_line_break_in_chinese_leaves_no_blank(mine: Path) -> None:
    mine.write_text(TWO + "about: >-\n  猫追蝴蝶，\n  忘了饭。 a\n  b\n", encoding="utf-8")
    assert load_calculation(mine, "zh").about == "猫追蝴蝶，忘了饭。 a b"


def test_heads_split_the_features_and_an_output_projection_mixes_them(mine: Path) -> None:
    mine.write_text(
        "X: [[1, 0, 2, 1], [0, 1, 1, 3], [1, 1, 0, 0]]\nheads: 2\nW_O: [[1], [2], [3], [4]]\nrow: x2\n",
        encoding="utf-8",
    )
    calculation = load_calculation(mine, "en")
    first, second = (walk_through_calculation(calculation, head) for head in (0, 1))
    assert first.row == 1
    for number, walk in enumerate((first, second)):
        maps = [part.values for part in walk.step("heads").parts if not isinstance(part, str)]
        np.testing.assert_array_equal(walk.step("weights").result.values, maps[number])
        columns = slice(2 * number, 2 * number + 2)
        together = walk.step("together").result.values
        np.testing.assert_array_equal(together[:, columns], walk.step("output").result.values)
        np.testing.assert_allclose(walk.step("projected").result.values, together @ [[1], [2], [3], [4]])
    with pytest.raises(UserError, match=r"head \(2\) must be below heads \(2\)"):
        walk_through_calculation(calculation, 2)


@pytest.mark.parametrize("given", ["Q: {x}\nK: {x}\nV: {x}\n", "X: {x}\nW_V: {eye}\n", "X: {x}\n"])
def test_the_values_of_every_head_stand_below_the_names_of_its_own_features(given: str, mine: Path) -> None:
    names = "features" if "W_V" not in given and "X" in given else "value_features"
    eye = [[float(row == column) for column in range(4)] for row in range(4)]
    matrices = given.format(x=[[1, 0, 2, 1], [0, 1, 1, 3], [1, 1, 0, 0]], eye=eye)
    mine.write_text(f"{matrices}heads: 2\n{names}: [a, b, c, d]\n", encoding="utf-8")
    calculation = load_calculation(mine, "en")
    for head, columns in enumerate((("a", "b"), ("c", "d"))):
        walk = walk_through_calculation(calculation, head)
        assert walk.step("weighted").matrix("V").columns == columns
        assert walk.step("output").result.columns == columns


def test_the_matrices_of_the_docs_are_explained(mine: Path) -> None:
    page = Path(__file__).parents[2] / "docs" / "explain.md"
    (block,) = re.findall(r"```yaml\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    mine.write_text(block, encoding="utf-8")
    walk = walk_through_calculation(load_calculation(mine, "en"))
    assert walk.queries[walk.row] == "cold"
    assert 15 < walk.step("output").result.values[1, 0] < 20

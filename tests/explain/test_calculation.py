from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.typing import ArrayLike, NDArray

from anaphora.base.errors import UserError
from anaphora.base.language import LANGUAGES
from anaphora.base.translation import spoken_in
from anaphora.explain import EXAMPLES
from anaphora.explain.calculation import walk_through_calculation
from anaphora.explain.matrices import load_example
from anaphora.explain.walk import Matrix, Walkthrough
from anaphora.model.attention import attend, attention_weights


def walk(name: str, language: str = "en") -> Walkthrough:
    with spoken_in(language):
        return walk_through_calculation(load_example(name, language))


def values(walkthrough: Walkthrough, step: str) -> NDArray[np.float64]:
    return walkthrough.step(step).result.values


def same(values: ArrayLike, printed: ArrayLike, digits: int = 6) -> None:
    np.testing.assert_allclose(np.asarray(values), np.asarray(printed), rtol=0, atol=0.5 * 10.0**-digits)


def test_the_matrix_form_without_scale() -> None:
    walkthrough = walk("matrix_form")
    same(values(walkthrough, "products"), [[14, 20, 4], [20, 30, 4], [4, 4, 4]])
    same(values(walkthrough, "output"), [[1, 2, 4.995054], [1, 2, 4.999909], [0.666667, 2, 2.666667]])
    assert "scale" not in [step.name for step in walkthrough.steps]


def test_four_steps_of_one_query() -> None:
    walkthrough = walk("one_query")
    same(values(walkthrough, "weights"), [[0.314284, 0.332963, 0.352753]])
    same(values(walkthrough, "output"), [[4.115406, 5.115406, 6.115406]])
    same(values(walkthrough, "products"), [[0.19, 0.29, 0.39]])
    same(values(walkthrough, "scale"), np.array([[0.19, 0.29, 0.39]]) / np.sqrt(3))
    same(values(walkthrough, "weighted")[0].sum(axis=0), [4.115406, 5.115406, 6.115406])


def test_attention_without_parameters_gives_the_row_that_is_asked_for() -> None:
    walkthrough = walk("no_projections")
    weights = values(walkthrough, "weights")
    same(weights[0], [0.4, 0.4, 0.2])
    with pytest.raises(UserError, match=r"step \('nix'\) must be one of inputs, "):
        walkthrough.step("nix")
    with pytest.raises(UserError, match=r"matrix \('nix'\) must be X$"):
        walkthrough.step("inputs").matrix("nix")
    x = walkthrough.step("inputs").result.values
    same(values(walkthrough, "output"), weights @ x, 12)
    same(values(walkthrough, "products")[0, 2], 0.3069, 4)  # the slip names this number
    assert walkthrough.queries == ("早 early", "上 up", "好 good")
    assert walk("no_projections", "zh").queries == ("早", "上", "好")


def test_five_vectors_of_four_features() -> None:
    walkthrough = walk("equal_projections")
    same(values(walkthrough, "queries"), walkthrough.step("inputs").result.values)
    same(values(walkthrough, "keys"), [[1.0] * 4] + [[0.5] * 4] * 4)
    same(values(walkthrough, "values"), [[0.5] * 4] + [[0.25] * 4] * 4)
    same(values(walkthrough, "scale"), [[1, 0.5, 0.5, 0.5, 0.5]] + [[0.5, 0.25, 0.25, 0.25, 0.25]] * 4)
    same(values(walkthrough, "weights"), [[0.291875] + [0.177031] * 4] + [[0.243001] + [0.189250] * 4] * 4)
    same(values(walkthrough, "output"), [[0.322969] * 4] + [[0.310750] * 4] * 4)


def test_the_calculation_by_hand() -> None:
    walkthrough = walk("by_hand")
    same(values(walkthrough, "queries"), [[1, 5], [9, 13], [17, 21]])
    same(values(walkthrough, "keys"), [[5, 1], [13, 9], [21, 17]])
    same(values(walkthrough, "values"), [[2, 4], [10, 12], [18, 20]])
    same(values(walkthrough, "products"), [[10, 58, 106], [58, 234, 410], [106, 410, 714]])
    same(values(walkthrough, "scale")[0], [7.0711, 41.0122, 74.9533], 4)
    same(values(walkthrough, "scale")[1, 2], 289.91, 2)
    same(values(walkthrough, "scale")[2, 2], 504.9, 1)
    same(values(walkthrough, "weights"), [[0, 0, 1]] * 3, 14)
    same(values(walkthrough, "output"), [[18, 20]] * 3)
    assert "504.87" in walkthrough.step("shift").text


def test_a_question_reads_a_text_of_another_length() -> None:
    walkthrough = walk("two_sequences")
    same(values(walkthrough, "queries"), [[2, 0], [0, 2]])
    same(values(walkthrough, "keys"), [[2, 1], [0, 0], [1, 2]])
    same(values(walkthrough, "values"), [[2, 0, 1], [0, 2, 0], [1, 0, 2]])
    same(values(walkthrough, "products"), [[4, 0, 2], [2, 0, 4]])
    raised = np.exp([[2**1.5, 0, 2**0.5], [2**0.5, 0, 2**1.5]])
    weights = raised / raised.sum(axis=1, keepdims=True)
    same(values(walkthrough, "weights"), weights, 12)
    same(values(walkthrough, "weights")[0], [0.767918, 0.045388, 0.186694])
    same(values(walkthrough, "output"), weights @ [[2, 0, 1], [0, 2, 0], [1, 0, 2]], 12)
    assert walkthrough.queries == ("who", "where")
    assert walkthrough.step("weights").result.columns == ("puppy", "sleeps", "garden")


@pytest.mark.parametrize(
    ("name", "asking", "meant", "others"),
    [
        ("starving_kitten", 7, 0, (2, 3, 6)),
        ("starving_kitten", 5, 0, (2, 3, 6)),
        ("skipped_soup", 4, 0, (2,)),
        ("apple_to_eat", 3, 2, (0, 1)),
    ],
)
@pytest.mark.parametrize("language", LANGUAGES)
def test_the_word_that_is_meant_gets_most_of_the_weight(
    name: str, asking: int, meant: int, others: tuple[int, ...], language: str
) -> None:
    row = values(walk(name, language), "weights")[asking]
    assert row.argmax() == meant
    assert row[meant] > 0.8 > 8 * max(row[other] for other in others)


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_context_decides_the_sense_of_one_word(language: str) -> None:
    fruit, phone = (walk(name, language) for name in ("apple_to_eat", "apple_to_charge"))
    for walkthrough, sense in ((fruit, 0), (phone, 1)):
        output = walkthrough.step("output").result
        assert output.values[walkthrough.row].argmax() == sense
        assert output.values[walkthrough.row][sense] > 0.8
        assert output.columns == (("fruit", "phone") if language == "en" else ("水果", "手机"))
    read = [walkthrough.step("inputs").result.values[walkthrough.row] for walkthrough in (fruit, phone)]
    same(read[0], read[1])


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("name", EXAMPLES)
def test_every_example_is_explained_in_both_languages_with_shapes_that_fit(name: str, language: str) -> None:
    walkthrough = walk(name, language)
    assert walkthrough.title and walkthrough.about and walkthrough.language == language
    assert any("\u4e00" <= sign <= "\u9fff" for sign in walkthrough.title) == (language == "zh")
    for step in walkthrough.steps:
        assert step.title and step.text and "{" not in step.text
        for part in step.parts:
            if isinstance(part, Matrix):
                assert part.values.shape[-2:] == (len(part.rows), len(part.columns))
                assert np.isfinite(part.values).all()
                assert not part.followed or part.rows == walkthrough.queries


def test_the_slips_of_the_published_calculations_are_named_where_they_happen() -> None:
    where = {name: {step.name for step in walk(name).steps if step.slips} for name in EXAMPLES}
    assert where["matrix_form"] == {"output"}
    assert where["no_projections"] == {"products"}
    assert where["equal_projections"] == {"queries", "keys", "values", "scale", "weights", "output"}
    assert where["by_hand"] == {"products", "scale"}
    assert all("410" in slip.right for name in ("products", "scale") for slip in walk("by_hand").step(name).slips)
    assert not any(where[name] for name in ("starving_kitten", "skipped_soup", "apple_to_eat"))


@pytest.mark.parametrize("name", EXAMPLES)
def test_each_step_follows_from_the_one_before(name: str) -> None:
    walkthrough = walk(name)
    for step in walkthrough.steps:
        for place, part in enumerate(step.parts):
            if part == "×":
                left, right = (step.parts[place + way] for way in (-1, 1))
                assert isinstance(left, Matrix) and isinstance(right, Matrix)
                same(left.values @ right.values, step.result.values, 10)
    raised, total = (walkthrough.step("exponential").matrix(name).values for name in ("E", "z"))
    same(raised / total, values(walkthrough, "weights"), 14)
    same(values(walkthrough, "weights").sum(axis=1), 1, 14)
    same(values(walkthrough, "weighted").sum(axis=1), values(walkthrough, "output"), 12)


def test_the_numbers_are_those_of_the_encoders_own_attention() -> None:
    walkthrough = walk("equal_projections")
    query, key, value = (
        torch.from_numpy(values(walkthrough, name))[None, None] for name in ("queries", "keys", "values")
    )
    assert torch.equal(
        attention_weights(query, key, query.new_zeros(()))[0, 0], torch.from_numpy(values(walkthrough, "weights"))
    )
    assert torch.equal(attend(query, key, value, None)[0, 0], torch.from_numpy(values(walkthrough, "output")))


def test_a_walk_is_plain_data() -> None:
    walkthrough = walk("one_query").plain()
    assert walkthrough["queries"] == ["query"] and walkthrough["row"] == 0
    last = walkthrough["steps"][-1]["parts"]
    assert [part for part in last if isinstance(part, str)] == ["×", "="]
    assert last[0]["matrix"] == "A" and last[0]["columns"] == ["first", "second", "third"]

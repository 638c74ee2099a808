from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.typing import ArrayLike, NDArray

from anaphora.explain.calculation import calculate
from anaphora.explain.matrices import example
from anaphora.explain.phrases import LANGUAGES, Phrases
from anaphora.explain.settings import EXAMPLES
from anaphora.explain.walk import Matrix, Walk
from anaphora.model.attention import attend, attention_weights


def walk(name: str, language: str = "en") -> Walk:
    return calculate(example(name, language), Phrases(language))


def found(told: Walk, step: str) -> NDArray[np.float64]:
    return told.step(step).result.values


def same(values: ArrayLike, printed: ArrayLike, digits: int = 6) -> None:
    np.testing.assert_allclose(np.asarray(values), np.asarray(printed), rtol=0, atol=0.5 * 10.0**-digits)


def test_the_matrix_form_without_scale() -> None:
    told = walk("matrix_form")
    same(found(told, "products"), [[14, 20, 4], [20, 30, 4], [4, 4, 4]])
    same(found(told, "output"), [[1, 2, 4.995054], [1, 2, 4.999909], [0.666667, 2, 2.666667]])
    assert "scale" not in [step.name for step in told.steps]


def test_four_steps_of_one_query() -> None:
    told = walk("one_query")
    same(found(told, "weights"), [[0.314284, 0.332963, 0.352753]])
    same(found(told, "output"), [[4.115406, 5.115406, 6.115406]])
    same(found(told, "products"), [[0.19, 0.29, 0.39]])
    same(found(told, "scale"), np.array([[0.19, 0.29, 0.39]]) / np.sqrt(3))
    same(found(told, "weighted")[0].sum(axis=0), [4.115406, 5.115406, 6.115406])


def test_attention_without_parameters_gives_the_row_that_is_asked_for() -> None:
    told = walk("no_projections")
    weights = found(told, "weights")
    same(weights[0], [0.4, 0.4, 0.2])
    x = told.step("inputs").result.values
    same(found(told, "output"), weights @ x, 12)
    same(found(told, "products")[0, 2], 0.3069, 4)  # the slip names this number
    assert told.tokens == ("早 early", "上 up", "好 good")
    assert walk("no_projections", "zh").tokens == ("早", "上", "好")


def test_five_vectors_of_four_features() -> None:
    told = walk("equal_projections")
    same(found(told, "queries"), told.step("inputs").result.values)
    same(found(told, "keys"), [[1.0] * 4] + [[0.5] * 4] * 4)
    same(found(told, "values"), [[0.5] * 4] + [[0.25] * 4] * 4)
    same(found(told, "scale"), [[1, 0.5, 0.5, 0.5, 0.5]] + [[0.5, 0.25, 0.25, 0.25, 0.25]] * 4)
    same(found(told, "weights"), [[0.291875] + [0.177031] * 4] + [[0.243001] + [0.189250] * 4] * 4)
    same(found(told, "output"), [[0.322969] * 4] + [[0.310750] * 4] * 4)


def test_the_calculation_by_hand() -> None:
    told = walk("by_hand")
    same(found(told, "queries"), [[1, 5], [9, 13], [17, 21]])
    same(found(told, "keys"), [[5, 1], [13, 9], [21, 17]])
    same(found(told, "values"), [[2, 4], [10, 12], [18, 20]])
    same(found(told, "products"), [[10, 58, 106], [58, 234, 410], [106, 410, 714]])
    same(found(told, "scale")[0], [7.0711, 41.0122, 74.9533], 4)
    same(found(told, "scale")[1, 2], 289.91, 2)
    same(found(told, "scale")[2, 2], 504.9, 1)
    same(found(told, "weights"), [[0, 0, 1]] * 3, 14)
    same(found(told, "output"), [[18, 20]] * 3)
    assert "504.87" in told.step("shift").text


def test_a_question_reads_a_text_of_another_length() -> None:
    told = walk("two_sequences")
    same(found(told, "queries"), [[2, 0], [0, 2]])
    same(found(told, "keys"), [[2, 1], [0, 0], [1, 2]])
    same(found(told, "values"), [[2, 0, 1], [0, 2, 0], [1, 0, 2]])
    same(found(told, "products"), [[4, 0, 2], [2, 0, 4]])
    raised = np.exp([[2**1.5, 0, 2**0.5], [2**0.5, 0, 2**1.5]])
    weights = raised / raised.sum(axis=1, keepdims=True)
    same(found(told, "weights"), weights, 12)
    same(found(told, "weights")[0], [0.767918, 0.045388, 0.186694])
    same(found(told, "output"), weights @ [[2, 0, 1], [0, 2, 0], [1, 0, 2]], 12)
    assert told.tokens == ("who", "where")
    assert told.step("weights").result.columns == ("puppy", "sleeps", "garden")


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
    row = found(walk(name, language), "weights")[asking]
    assert row.argmax() == meant
    assert row[meant] > 0.8 > 8 * max(row[other] for other in others)


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_context_decides_the_sense_of_one_word(language: str) -> None:
    fruit, phone = (walk(name, language) for name in ("apple_to_eat", "apple_to_charge"))
    for told, sense in ((fruit, 0), (phone, 1)):
        output = told.step("output").result
        assert output.values[told.row].argmax() == sense
        assert output.values[told.row][sense] > 0.8
        assert output.columns == (("fruit", "phone") if language == "en" else ("水果", "手机"))
    read = [told.step("inputs").result.values[told.row] for told in (fruit, phone)]
    same(read[0], read[1])


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("name", EXAMPLES)
def test_every_example_is_told_in_both_languages_with_shapes_that_fit(name: str, language: str) -> None:
    told = walk(name, language)
    assert told.title and told.about and told.language == language
    assert any("\u4e00" <= sign <= "\u9fff" for sign in told.title) == (language == "zh")
    for step in told.steps:
        assert step.title and step.text and "{" not in step.text
        for part in step.parts:
            if isinstance(part, Matrix):
                assert part.values.shape[-2:] == (len(part.rows), len(part.columns))
                assert np.isfinite(part.values).all()
                assert not part.followed or part.rows == told.tokens


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
    told = walk(name)
    for step in told.steps:
        for place, part in enumerate(step.parts):
            if part == "×":
                left, right = (step.parts[place + way] for way in (-1, 1))
                assert isinstance(left, Matrix) and isinstance(right, Matrix)
                same(left.values @ right.values, step.result.values, 10)
    raised, total = (told.step("exponential").matrix(name).values for name in ("E", "z"))
    same(raised / total, found(told, "weights"), 14)
    same(found(told, "weights").sum(axis=1), 1, 14)
    same(found(told, "weighted").sum(axis=1), found(told, "output"), 12)


def test_the_numbers_are_those_of_the_encoders_own_attention() -> None:
    told = walk("equal_projections")
    query, key, value = (torch.from_numpy(found(told, name))[None, None] for name in ("queries", "keys", "values"))
    assert torch.equal(
        attention_weights(query, key, query.new_zeros(()))[0, 0], torch.from_numpy(found(told, "weights"))
    )
    assert torch.equal(attend(query, key, value, None)[0, 0], torch.from_numpy(found(told, "output")))


def test_a_walk_is_plain_data() -> None:
    told = walk("one_query").plain()
    assert told["tokens"] == ["query"] and told["row"] == 0
    last = told["steps"][-1]["parts"]
    assert [part for part in last if isinstance(part, str)] == ["×", "="]
    assert last[0]["matrix"] == "A" and last[0]["columns"] == ["first", "second", "third"]

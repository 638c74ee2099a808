from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from anaphora.analysis.results.scores import Head
from anaphora.analysis.results.typed_json import to_json
from anaphora.analysis.scores.measures.specificity import pronoun_specificity, query_masses
from anaphora.data.example import Example
from anaphora.data.tokens.tokenizer import TokenizedText
from anaphora.data.tokens.vocabulary import word_vocabulary

EXAMPLE = Example(
    text="Anna fed Emma because she was weak.",
    language="en",
    pronoun=(22, 25),
    candidates=(((0, 4),), ((9, 13),)),
    antecedents=(1,),
    factors={"kind": "role", "template": "a"},
)


@pytest.fixture(scope="module")
def tokens() -> TokenizedText:
    return word_vocabulary([EXAMPLE.text] * 3).encode(EXAMPLE.text)


def position(tokens: TokenizedText, word: str) -> int:
    start = EXAMPLE.text.index(word)
    return tokens.covering((start, start + len(word)))[0]


def weights(tokens: TokenizedText, **to_emma: float) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
    """Return a map, (T, T), in which the given words attend to Emma with these weights, and to [CLS] with the rest."""
    count = len(tokens.ids)
    table = np.zeros((count, count), dtype=np.float32)
    table[:, position(tokens, "Emma")] = 0.1
    for word, mass in to_emma.items():
        table[position(tokens, word), position(tokens, "Emma")] = mass
    table[:, 0] += 1 - table.sum(axis=1)
    return table


def test_the_best_other_word_is_found_outside_the_antecedent_and_the_special_tokens(tokens: TokenizedText) -> None:
    table = weights(tokens, she=0.8, weak=0.3, Emma=0.95)
    table[0, position(tokens, "Emma")] = 0.99  # [CLS]
    pronoun, best_other = query_masses(EXAMPLE, tokens, table)
    assert pronoun == pytest.approx(0.8)
    assert best_other == pytest.approx(0.3)


def test_means_ratio_and_difference_by_language_and_kind(tokens: TokenizedText) -> None:
    tables = [weights(tokens, she=0.9, weak=0.6), weights(tokens, she=0.5, fed=0.2)]
    other = Example(**{**{name: getattr(EXAMPLE, name) for name in EXAMPLE.__dataclass_fields__}, "group": "b"})
    maps = [(tokens, np.stack([np.zeros_like(table), table])[None]) for table in tables]
    cell = to_json(pronoun_specificity([EXAMPLE, other], maps, Head(0, 1)))["en"]["role"]
    assert cell["items"] == 2
    assert (cell["pronoun_mass"], cell["best_other_mass"]) == (pytest.approx(0.7), pytest.approx(0.4))
    assert (cell["ratio"], cell["difference"]) == (pytest.approx(1.75), pytest.approx(0.3))
    assert cell["interval"] is None and "ratio_interval" not in cell  # one template


def test_a_head_that_gives_other_words_nothing_has_no_ratio(tokens: TokenizedText) -> None:
    table = np.zeros((len(tokens.ids),) * 2, dtype=np.float32)
    table[position(tokens, "she"), position(tokens, "Emma")] = 1
    cell = to_json(pronoun_specificity([EXAMPLE], [(tokens, table[None, None])], Head(0, 0)))["en"]["all"]
    assert cell["ratio"] is None and cell["pronoun_mass"] == 1


def test_the_interval_of_the_ratio_is_that_of_a_bootstrap_of_whole_templates(tokens: TokenizedText) -> None:
    random = np.random.default_rng(0)
    given = random.uniform(0.3, 0.9, 40)
    others = random.uniform(0.1, 0.3, 40)
    examples = [replace(EXAMPLE, factors={"kind": "role", "template": f"{item % 20}"}) for item in range(40)]
    tables = [weights(tokens, she=one, weak=other) for one, other in zip(given, others, strict=True)]
    cell = pronoun_specificity(examples, [(tokens, table[None, None]) for table in tables], Head(0, 0))["en"]["role"]
    assert cell.ratio == pytest.approx(given.mean() / others.mean(), rel=1e-3)
    drawn = random.integers(20, size=(4000, 20))
    sums = [values.reshape(2, 20).sum(axis=0)[drawn].sum(axis=1) for values in (given, others)]
    assert cell.ratio_interval is not None
    assert cell.ratio_interval == pytest.approx(np.quantile(sums[0] / sums[1], [0.025, 0.975]), rel=0.03)

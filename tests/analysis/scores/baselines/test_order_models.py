from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest

from anaphora.analysis.scores.baselines.order_models import RULE_MODEL, _presence, fit_order_models, is_of_two
from anaphora.data.example import Example
from anaphora.data.tokens.vocabulary import word_vocabulary

NAMES = ("Anna", "Emma", "Clara", "Ruth")
POSITIVE, NEGATIVE = ("helped", "beat", "fed"), ("feared", "copied", "robbed")
HIGH, LOW = ("strong", "rich", "calm"), ("weak", "poor", "ill")


def item(
    predicate: str, state: str, passive: bool, means_first: bool, names: tuple[str, str], **factors: str
) -> Example:
    verb = f"was {predicate} by" if passive else predicate
    text = f"{names[0]} {verb} {names[1]} because she was {state}."
    spans = [(text.index(name), text.index(name) + len(name)) for name in names]
    place = text.index(" she ") + 1
    voice = "patient_first" if passive else "agent_first"
    return Example(
        text=text,
        language="en",
        pronoun=(place, place + 3),
        candidates=((spans[0],), (spans[1],)),
        antecedents=(0 if means_first else 1,),
        factors={"predicate": predicate, "cue": state, "voice": voice, "scenario": predicate, **factors},
    )


def every_item(rule: Callable[[bool, bool, bool], bool]) -> list[Example]:
    """Return all combinations of factors and names; `rule` decides by class, side and voice if the first is meant."""
    return [
        item(predicate, state, passive, rule(predicate in POSITIVE, state in HIGH, passive), (one, other))
        for predicate in (*POSITIVE, *NEGATIVE)
        for state in (*HIGH, *LOW)
        for passive in (False, True)
        for one in NAMES
        for other in NAMES
        if one != other
    ]


def three_way(positive: bool, high: bool, passive: bool) -> bool:
    return positive ^ high ^ passive


def accuracy(train: list[Example], test: list[Example]) -> dict[str, float]:
    tokenizer = word_vocabulary([example.text for example in train])
    [shortcuts] = fit_order_models([(train, test)], tokenizer)
    return {name: float(right.mean()) for name, right in shortcuts.items()}


def test_a_rule_of_words_is_learned_by_all_and_names_are_not_read() -> None:
    examples = every_item(lambda positive, high, passive: high)
    random.Random(0).shuffle(examples)
    reached = accuracy(examples[:300], examples[300:])
    assert all(value > 0.9 for value in reached.values()), reached
    meant_by_name = every_item(lambda positive, high, passive: True)
    swapped = [
        item(
            example.factors["predicate"],
            example.factors["cue"],
            example.factors["voice"] == "patient_first",
            example.words(0) in NAMES[:2],
            (example.words(0), example.words(1)),
        )
        for example in meant_by_name
    ]
    random.Random(0).shuffle(swapped)
    assert max(accuracy(swapped[:300], swapped[300:]).values()) < 0.65


def test_where_three_words_decide_sets_of_three_tell_and_smaller_ones_do_not() -> None:
    examples = every_item(three_way)
    random.Random(1).shuffle(examples)
    reached = accuracy(examples[:300], examples[300:])
    assert reached["words"] < 0.65 and reached["pairs"] < 0.65
    assert reached["triples"] > 0.85 and reached["triples_with_places"] > 0.85 and reached["boosted_trees"] > 0.85
    assert reached["table_of_wordings"] > 0.95 and reached[RULE_MODEL] > 0.99


def test_combinations_never_seen_are_beyond_every_shortcut_but_not_beyond_the_rule() -> None:
    examples = every_item(three_way)
    withheld = {("helped", "strong"), ("beat", "poor"), ("feared", "calm"), ("copied", "ill")}
    hidden = [one for one in examples if (one.factors["predicate"], one.factors["cue"]) in withheld]
    shown = [one for one in examples if one not in hidden]
    reached = accuracy(shown, hidden)
    assert reached["table_of_wordings"] == 0.5  # it knows nothing of them
    assert all(value < 0.6 for name, value in reached.items() if name != RULE_MODEL), reached
    assert reached[RULE_MODEL] == 1.0


def test_the_same_items_give_the_same_numbers() -> None:
    examples = every_item(three_way)[::3]
    tokenizer = word_vocabulary([example.text for example in examples])
    [one], [two] = (fit_order_models([(examples, examples[:40])], tokenizer) for _ in range(2))
    assert all(np.array_equal(one[name], two[name]) for name in one)


@pytest.mark.parametrize(
    ("focal", "antecedents", "is_one"), [("0,1", (0,), True), ("0,1", (0, 1), False), ("0", (0,), False)]
)
def test_items_of_one_answer_among_two_are_read(focal: str, antecedents: tuple[int, ...], is_one: bool) -> None:
    example = Example(
        text="Anna fed Emma, so she ate.",
        language="en",
        pronoun=(18, 21),
        candidates=(((0, 4),), ((9, 13),)),
        antecedents=antecedents,
        factors={"focal": focal},
    )
    assert is_of_two(example) == is_one


def test_a_word_before_between_or_after_the_features_is_in_no_column() -> None:
    texts = [np.array([1, 4]), np.array([2, 3, 9]), np.array([], dtype=np.int64)]
    assert _presence(texts, np.array([2, 4])).tolist() == [[0, 1], [1, 0], [0, 0]]

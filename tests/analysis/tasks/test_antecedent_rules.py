from __future__ import annotations

from dataclasses import replace

import pytest

from anaphora.analysis.tasks.antecedent_rules import RULES, AgreementFeatures, agree, agreement_features, rule_hits
from anaphora.data.example import Example


def example(text: str, word: str, entities: list[list[tuple[str, str]]], right: int) -> Example:
    """Return an example with mentions (whole, head word), each the next occurrence in the text."""
    spans: list[list[tuple[int, int]]] = [[] for _ in entities]
    extents: list[list[str]] = [[] for _ in entities]
    for index, mentions in enumerate(entities):
        place = 0
        for whole, head in mentions:
            start = text.index(whole, place)
            inside = start + whole.index(head)
            spans[index].append((inside, inside + len(head)))
            extents[index].append(f"{start}:{start + len(whole)}")
            place = start + len(whole)
    start = text.rindex(word)
    return Example(
        text=text,
        language="en",
        pronoun=(start, start + len(word)),
        candidates=tuple(map(tuple, spans)),
        antecedents=(right,),
        factors={"extent": f"{start}:{start + len(word)}", "extents": ";".join(map(",".join, extents))},
    )


def chosen(text: str, word: str, entities: list[list[tuple[str, str]]]) -> dict[str, int]:
    """Return the index of the entity that each rule picks."""
    hits_of_rules = [rule_hits(example(text, word, entities, right)) for right in range(len(entities))]
    return {name: next(number for number, hits in enumerate(hits_of_rules) if hits[name]) for name in RULES}


def test_the_nearest_mention_is_the_last_before_the_asked_one() -> None:
    text = "Anna saw the painter near the mill ; she waved ."
    entities = [[("Anna", "Anna")], [("the painter", "painter")], [("the mill", "mill")]]
    assert chosen(text, "she", entities)["nearest"] == 2


def test_the_head_match_takes_the_same_head_word_and_else_the_nearest() -> None:
    text = "The old mill burned ; the painter left . A small Mill"
    entities = [[("The old mill", "mill")], [("the painter", "painter")]]
    assert chosen(text, "Mill", entities)["head match"] == 0
    assert chosen(text, "small", entities)["head match"] == 1


def test_the_sieve_tries_the_whole_mention_then_its_head_then_agreement_then_the_nearest() -> None:
    entities = [[("his mill", "mill")], [("her mill", "mill")], [("the aunt", "aunt")]]
    text = "his mill , her mill , the aunt ; HIS mill"
    query = example(text, "mill", entities, 0)
    whole = f"{text.index('HIS')}:{len(text)}"
    assert rule_hits(replace(query, factors={**query.factors, "extent": whole}))["sieve"]
    assert chosen(text, "mill", entities)["sieve"] == 1
    assert chosen("Tom met the aunt and the girls ; he", "he", named("Tom", "the aunt", "the girls"))["sieve"] == 0
    assert chosen("Tom met the aunt and the girls ; she", "she", named("Tom", "the aunt", "the girls"))["sieve"] == 1
    assert chosen("the girls met the aunt ; they", "they", named("the girls", "the aunt"))["sieve"] == 0
    assert chosen("my friend met the aunt ; I", "I", [[("my", "my")], [("aunt", "aunt")]])["sieve"] == 0
    assert chosen("the aunt met Tom ; we", "we", named("the aunt", "Tom"))["sieve"] == 1


def named(*wholes: str) -> list[list[tuple[str, str]]]:
    return [[(whole, whole.split()[-1])] for whole in wholes]


@pytest.mark.parametrize(
    ("mention", "head", "expected"),
    [
        ("themselves", "themselves", AgreementFeatures(3, True, None)),
        ("Yours", "Yours", AgreementFeatures(2, None, None)),
        ("it", "it", AgreementFeatures(3, False, "thing")),
        ("Mrs. Bell", "Bell", AgreementFeatures(3, False, "female")),
        ("the king 's daughter", "daughter", AgreementFeatures(3, False, "female")),
        ("the king 's horse", "horse", AgreementFeatures(3, False, None)),
        ("Peter's horse", "horse", AgreementFeatures(3, False, None)),
        ("Peter and Anna", "Peter", AgreementFeatures(3, True, None)),
        ("the red roses", "roses", AgreementFeatures(3, True, None)),
        ("these sheep", "sheep", AgreementFeatures(3, True, None)),
        ("the glass", "glass", AgreementFeatures(3, False, None)),
        ("Thomas", "Thomas", AgreementFeatures(3, False, "male")),
        ("the old women", "women", AgreementFeatures(3, True, "female")),
    ],
)
def test_words_tell_person_number_and_gender(mention: str, head: str, expected: AgreementFeatures) -> None:
    start = mention.index(head)
    assert agreement_features(mention, (start, start + len(head)), (0, len(mention))) == expected


def test_what_is_unknown_agrees_with_anything_and_persons_never_mix() -> None:
    he = AgreementFeatures(3, False, "male")
    assert agree(he, AgreementFeatures(3, None, None))
    assert not agree(he, AgreementFeatures(3, False, "female"))
    assert not agree(he, AgreementFeatures(3, True, None))
    assert not agree(he, AgreementFeatures(1, False, None))


def test_without_a_mention_before_it_there_is_nothing_to_choose() -> None:
    late = Example(text="she saw Anna", language="en", pronoun=(0, 3), candidates=(((8, 12),),), antecedents=(0,))
    with pytest.raises(ValueError, match="nothing to choose from"):
        rule_hits(late)

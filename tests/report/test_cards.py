from __future__ import annotations

import pytest

from anaphora.report.cards import CardFacts, corpus_card, model_card


@pytest.mark.parametrize(
    ("languages", "text", "question"),
    [
        (("zh",), "小红帮助美玲，因为她很虚弱。", '"她", ["小红", "美玲"]'),
        (("en", "zh"), "Anna helped Emma because she was weak.", '"she", ["Anna", "Emma"]'),
    ],
)
def test_the_example_of_a_card_is_in_a_language_of_the_run(
    languages: tuple[str, ...], text: str, question: str
) -> None:
    facts = CardFacts(name="own", languages=languages, licence=None, architecture={}, training={}, answers=True)
    card = model_card(facts, [])
    assert f'tokenizer("{text}", ' in card and f'run.attention("{text}")' in card
    assert f'run.answer("{text}", {question})' in card


def test_words_of_a_data_set_stay_in_their_cell_and_are_no_html() -> None:
    counts = [{"split": "train", "type": "a|b\n<img src=x onerror=alert(1)>", "items": 4}]
    card = corpus_card({"data": "jsonl"}, "", ["train"], {}, counts)
    assert "| train | a\\|b &lt;img src=x onerror=alert(1)> | 4 |\n" in card


def test_a_number_below_a_bound_stays_as_it_is() -> None:
    assert "| < 0.001 |" in corpus_card({"data": "jsonl"}, "", ["train"], {}, [{"p": "< 0.001"}])

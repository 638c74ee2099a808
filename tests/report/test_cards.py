from __future__ import annotations

from anaphora.report.cards import corpus_card


def test_words_of_a_data_set_stay_in_their_cell_and_are_no_html() -> None:
    counts = [{"split": "train", "type": "a|b\n<img src=x onerror=alert(1)>", "items": 4}]
    card = corpus_card({"data": "jsonl"}, "", ["train"], {}, counts)
    assert "| train | a\\|b &lt;img src=x onerror=alert(1)> | 4 |\n" in card


def test_a_number_below_a_bound_stays_as_it_is() -> None:
    assert "| < 0.001 |" in corpus_card({"data": "jsonl"}, "", ["train"], {}, [{"p": "< 0.001"}])

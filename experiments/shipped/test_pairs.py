"""Tests of the hand-written minimal pairs for choices."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from anaphora.base.errors import UserError
from anaphora.data.corpora.tables import read
from anaphora.data.example import from_record
from anaphora.settings.data import OwnExamples
from experiments.shipped import pairs
from experiments.shipped.pairs import TYPES, work, written_pairs
from experiments.shipped.settings import SENTENCES, PairFiles

PRONOUNS = {
    "en": {"he", "him", "his", "she", "her", "hers", "it", "its", "they", "them", "their"},
    "zh": {"他", "她", "它", "他们", "她们", "它们"},
}


@pytest.mark.parametrize("language", ["en", "zh"])
def test_pairs_differ_and_hold_one_pronoun_after_two_candidates(language: str) -> None:
    seen: set[str] = set()
    for first, second in written_pairs(language):
        texts = {first["text"], second["text"]}
        assert len(texts) == 2 and seen.isdisjoint(texts), first["text"]
        seen |= texts
        for row in (first, second):
            start, end = row["pronoun"]
            assert row["text"][start:end].lower() in PRONOUNS[language], row["text"]
            (one, after_one), (other, after_other) = row["candidates"]
            assert one < after_one <= other < after_other <= start, row["text"]
            assert row["factors"]["type"] in TYPES
            from_record(row)


def test_pairs_share_no_sentence_with_the_sets_for_choices_and_tests() -> None:
    written = {row["text"] for language in ("en", "zh") for pair in written_pairs(language) for row in pair}
    for path in Path(SENTENCES).glob("*.jsonl"):
        for line in path.read_text(encoding="utf-8").splitlines():
            assert json.loads(line)["text"] not in written


def one_pair(monkeypatch: pytest.MonkeyPatch, folder: Path, line: str) -> tuple[dict[str, object], dict[str, object]]:
    (folder / "pairs.en.tsv").write_text(line + "\n", encoding="utf-8")
    monkeypatch.setattr(pairs, "FOLDER", folder)
    (pair,) = written_pairs("en")
    return pair


def test_the_first_choice_makes_the_first_candidate_the_antecedent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = one_pair(monkeypatch, tmp_path, "gender\tMy [aunt] met my [uncle], and <she|he> {sang|ran}.")
    assert (first["text"], second["text"]) == (
        "My aunt met my uncle, and she sang.",
        "My aunt met my uncle, and he ran.",
    )
    assert (first["antecedents"], second["antecedents"]) == ([0], [1])
    assert first["candidates"] == second["candidates"] == [[3, 7], [15, 20]]
    assert (first["pronoun"], second["pronoun"]) == ([26, 29], [26, 28])


@pytest.mark.parametrize(
    "line", ["role\tA [b] met <him>.", "odd\t[A] met [B], and <he> {sat|ran}.", "role\t[A] saw [B]."]
)
def test_a_line_outside_the_notation_is_named(line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UserError, match=r"pairs\.en\.tsv, line 1"):
        one_pair(monkeypatch, tmp_path, line)


def test_the_files_are_read_as_own_data(tmp_path: Path) -> None:
    work(PairFiles(output=str(tmp_path), split="test"))
    for language in ("en", "zh"):
        examples = read(OwnExamples(path=str(tmp_path / f"pairs.{language}.jsonl")))[0]["test"]
        assert len(examples) == 2 * sum(1 for _ in written_pairs(language))
        assert {example.language for example in examples} == {language}

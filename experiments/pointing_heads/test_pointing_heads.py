"""Tests of the study with tiny models on a few sentences, and that each rule can refute its claim."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny import tiny_language_model, tokenizer

from anaphora.base.errors import UserError
from anaphora.data.example import Example, from_record
from experiments.pointing_heads import claims
from experiments.pointing_heads.items import READINGS, exchanged, filled, with_noun
from experiments.pointing_heads.measure import Study, stored_parts
from experiments.pointing_heads.page import shown
from experiments.pointing_heads.phrases import EN
from experiments.pointing_heads.settings import PointingHeads

Parts = dict[str, dict[str, Any]]


def sentence(text: str, pronoun: str, candidates: list[str], antecedent: int, language: str = "en") -> Example:
    def span(words: str) -> list[int]:
        return [text.index(words), text.index(words) + len(words)]

    at = text.rindex(pronoun)
    return from_record(
        {
            "text": text,
            "language": language,
            "pronoun": [at, at + len(pronoun)],
            "candidates": [span(words) for words in candidates],
            "antecedents": [antecedent],
            "minimal_pair": "a pair",
            "factors": {"type": "gender"},
        }
    )


ANNA = sentence("Anna called Tom before she left.", "she", ["Anna", "Tom"], 0)


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Parts:
    """Return the measurements of two tiny encoders and a tiny language model on a few minimal pairs."""
    folder = tmp_path_factory.mktemp("study")
    for name in ("e5", "minilm"):
        tiny_language_model("bert", max_position_embeddings=256).save_pretrained(folder / "models" / name)
        tokenizer().save_pretrained(folder / "models" / name)
    tiny_language_model("llama", max_position_embeddings=256).save_pretrained(folder / "models" / "smollm2")
    tokenizer().save_pretrained(folder / "models" / "smollm2")
    for language in ("en", "zh"):
        own = Path(__file__).parents[1] / "shipped" / "sentences" / f"{language}.jsonl"
        rows = [json.loads(line) for line in own.read_text(encoding="utf-8").splitlines()]
        kept = [
            [row for row in rows if (row["split"], row["factors"]["type"]) == (split, kind) and len(row["text"]) < 90][
                :8
            ]
            for split in ("dev", "test")
            for kind in ("gender", "role")
        ]
        lines = [json.dumps(row) for some in kept for row in some]
        (folder / f"{language}.jsonl").write_text("\n".join(lines), encoding="utf-8")
    settings = PointingHeads(
        models=str(folder / "models"),
        data=str(folder),
        sentences=str(folder),
        measured="first",
        output=str(folder / "out"),
        parts=["development", "everyday", "vector", "probe", "shortcuts", "likelihoods", "copy"],
        training_items=40,
        copies=1,
        gap_copies=0,
        few_copies=0,
    )
    Study(settings).measure()
    return stored_parts(settings.output)


def test_each_part_has_a_number_for_each_sentence(measured: Parts) -> None:
    for reading in READINGS:
        everyday, vector, probe = (measured[f"{kind}-{reading.name}"] for kind in ("everyday", "vector", "probe"))
        count = len(everyday["right"])
        assert count == 16 == len(vector["margin"]) == len(probe["right"]["edge"])
        assert all(len(everyday["neighbours"][name]) == count for name in ("before", "after", "last"))
        assert sum(value is not None for value in everyday["stays"]) == 8  # the pairs of the type gender
        assert np.ptp(vector["fall"]["edge"]) > 0  # a cut edge changes the vector
    assert set(measured["copy-e5-shuffled-0"]["accuracy"]) == {"e5-zh", "e5-en"}
    assert measured["likelihoods"]["right"]


def test_parts_of_other_settings_are_not_mixed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = PointingHeads(models=str(tmp_path / "nowhere"), data="data", output=str(tmp_path / "out"))
    with pytest.raises(UserError, match="nowhere"):
        Study(settings).measure()
    assert not (tmp_path / "out").exists()  # nor a record of a folder that is not there
    monkeypatch.setattr(Study, "plan", lambda study: [("one", dict)])
    Study(settings).measure()
    Study(replace(settings, copies=30)).measure()
    with pytest.raises(
        UserError, match=r"measured \(first\) was second when .*parts was measured; name another output"
    ):
        Study(replace(settings, measured="first")).measure()


def test_as_many_copies_of_gap_as_of_everyday_sentences_are_allowed() -> None:
    settings = PointingHeads(models="models", data="data")
    assert settings.gap_copies == settings.copies == 20


def test_claims_whose_parts_are_missing_are_not_decided(measured: Parts) -> None:
    decided = {one.name: one for one in claims.decide(measured)}
    assert list(decided) == list(claims.rules())
    assert decided["transfers"].verdict == claims.UNDECIDED
    assert "corpus-e5-gap" in decided["transfers"].reason
    assert decided["points"].verdict == claims.FALLS  # untrained models


def test_the_verdicts_are_written_with_their_numbers(measured: Parts, tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    for name, part in measured.items():
        (tmp_path / "parts" / f"{name}.json").write_text(json.dumps(part), encoding="utf-8")
    claims.write_claims(str(tmp_path))
    written = json.loads((tmp_path / claims.CLAIMS).read_text(encoding="utf-8"))
    assert [one["name"] for one in written] == list(claims.rules())
    assert len(written[0]["numbers"]) == 3


def test_a_share_is_rounded_once() -> None:
    """23 of 34 are 67.647 %; a page that rounded 67.65 would show 67.7."""
    value, _ = claims.accuracy({"group": [str(number) for number in range(34)]}, [1.0] * 23 + [0.0] * 11)
    number = claims.Number("e5-en", value, (55.0, 79.0), holds=True)
    assert shown(number, EN).startswith("e5, English: 67.6 ")
    written = claims.rounded(claims.Decision("points", claims.STANDS, (number,)))
    assert [one.value for one in written.numbers] == [67.65]
    small = claims.Number("e5-en", -0.00567, (-0.007, -0.004), holds=False)
    assert [one.value for one in claims.rounded(replace(written, numbers=(small,))).numbers] == [-0.006]


def verdict(name: str, parts: Parts) -> str:
    return next(one.verdict for one in claims.decide(parts) if one.name == name)


def invented(right: Callable[[str, int], float]) -> Parts:
    """Return the parts of 80 minimal pairs, with the head's correctness as a function of type and item index."""
    kinds = ["gender"] * 80 + ["role"] * 80
    answers = [right(kind, number) for number, kind in enumerate(kinds)]
    part = {
        "group": [f"{number // 2}" for number in range(160)],
        "type": kinds,
        "right": answers,
        "second": [0.5] * 160,
        "p": 1e-6,
        "heads": 4,
        "neighbours": {name: [0.5] * 160 for name in ("before", "after", "last")},
        "noun": [one if kind == "gender" else None for one, kind in zip(answers, kinds, strict=True)],
        "stays": [2 * one - 1 if kind == "gender" else None for one, kind in zip(answers, kinds, strict=True)],
    }
    return {f"everyday-{reading.name}": part for reading in READINGS}


EVERYDAY = ("points", "one_head", "words_decide", "no_roles", "pronoun_alone", "noun_in_place", "names_exchanged")


@pytest.mark.parametrize("name", EVERYDAY)
def test_a_head_as_claimed_stands_and_a_useless_one_falls(name: str) -> None:
    pointing = invented(lambda kind, number: float(number % 20 > 0) if kind == "gender" else float(number % 2))
    useless = invented(lambda kind, number: float(number % 4 == 0))
    assert verdict(name, pointing) == claims.STANDS
    assert verdict(name, useless) == claims.FALLS


def test_fewer_copies_refute_a_claim_but_do_not_confirm_it() -> None:
    parts = invented(lambda kind, number: float(number % 5 > 0))
    for seed in range(3):
        for model in ("e5", "minilm"):
            for kind in ("untrained", "shuffled"):
                weak = {reading.name: 55.0 for reading in READINGS if reading.model == model}
                parts[f"copy-{model}-{kind}-{seed}"] = {"accuracy": weak}
    assert verdict("beats_copies", parts) == claims.UNDECIDED
    parts["copy-e5-shuffled-3"] = {"accuracy": {"e5-zh": 81.0, "e5-en": 81.0}}
    parts |= {
        f"copy-minilm-{kind}-{seed}": parts["copy-minilm-untrained-0"]
        for kind in ("untrained", "shuffled")
        for seed in range(20)
    }
    parts |= {f"copy-e5-untrained-{seed}": parts["copy-e5-untrained-0"] for seed in range(20)}
    assert verdict("beats_copies", parts) == claims.FALLS


def test_candidates_exchange_their_places() -> None:
    changed = exchanged(ANNA)
    assert changed is not None
    assert changed.text == "Tom called Anna before she left."
    assert [changed.words(number) for number in range(2)] == ["Tom", "Anna"]
    assert changed.antecedents == (1,)


def test_the_candidates_words_stand_in_the_pronouns_place() -> None:
    assert filled(ANNA, 1) == "Anna called Tom before Tom left."


@pytest.mark.parametrize(
    ("example", "text", "noun"),
    [
        (ANNA, "Anna called Tom before the woman left.", "woman"),
        (sentence("Anna met Tom, but her car broke.", "her", ["Anna", "Tom"], 0),
         "Anna met Tom, but the woman's car broke.", "woman"),
        (sentence("Anna and Tom ate when I saw her in town.", "her", ["Anna", "Tom"], 0),
         "Anna and Tom ate when I saw the woman in town.", "woman"),
        (sentence("小红等小明，她来早了。", "她", ["小红", "小明"], 0, "zh"), "小红等小明，那个女人来早了。", "女人"),
    ],
)  # fmt: skip
def test_a_definite_noun_takes_the_pronouns_place(example: Example, text: str, noun: str) -> None:
    changed = with_noun(example, "he")
    assert changed is not None
    assert (changed.text, changed.text[slice(*changed.pronoun)]) == (text, noun)


def test_they_are_things_if_the_other_sentence_of_the_pair_has_it() -> None:
    keys = sentence("The keys lay by the lamp, so I saw them.", "them", ["keys", "lamp"], 0)
    things, people = with_noun(keys, "it"), with_noun(keys, "he")
    assert things is not None and people is not None
    assert things.text.endswith("I saw the things.") and people.text.endswith("I saw the people.")
    assert with_noun(replace(keys, pronoun=(0, 3)), "it") is None  # "The" is no pronoun

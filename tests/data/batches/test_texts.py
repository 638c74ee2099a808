from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as draw

from anaphora.base.errors import UserError
from anaphora.data.batches import texts as module
from anaphora.data.batches.texts import EncodedTexts
from anaphora.data.text import Text
from anaphora.data.tokens.vocabulary import DroppingTokenizer, word_vocabulary
from anaphora.settings.vocabulary import CLS, Bpe, WordPiece

TEXTS = [
    "Anna walked to the mother-in-law's garden, talking.",
    "王芳碰到李强以后,她去了公园。",
    "Unbelievable! 12 cats 公园",
]
TOKENIZERS = [WordPiece(size=70).build(TEXTS * 2), Bpe(size=80).build(TEXTS * 2)]


def text(written: str, label: str | None = None) -> Text:
    return Text(text=written, language="en", label=label)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ANAPHORA_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def pieces(data: EncodedTexts) -> list[tuple[list[int], list[int]]]:
    numbers = [np.array([item]) for item in range(len(data))]
    return [(data.ids.take(one)[0].tolist(), data.words.take(one)[0].tolist()) for one in numbers]


@settings(max_examples=60, deadline=None)
@given(
    draw.lists(draw.sampled_from([*TEXTS, "a", "\n", " ", "é", "长长长长长长"]), max_size=6),
    draw.integers(2, 9),
    draw.integers(0, 1),
)
def test_pieces_are_the_text_cut_into_rows_and_between_words_where_they_fit(
    parts: list[str], longest: int, which: int
) -> None:
    tokenizer = TOKENIZERS[which]
    written = "x" + " ".join(parts)
    arrays = module._encode([written], tokenizer, longest, first_only=False)
    bounds = (
        np.split(arrays["ids"], arrays["lengths"].cumsum()[:-1]),
        np.split(arrays["words"], arrays["lengths"].cumsum()[:-1]),
    )
    whole = tokenizer.encode(written)
    assert [number for piece in bounds[0] for number in piece[1:].tolist()] == list(whole.ids[1:])
    assert [number for piece in bounds[1] for number in piece[1:].tolist()] == list(whole.words[1:])
    for number, (ids, words) in enumerate(zip(*bounds, strict=True)):
        assert ids[0] == CLS and words[0] == -1
        assert len(ids) <= longest
        if number and words[1] == bounds[1][number - 1][-1]:
            before = bounds[1][number - 1][1:]
            assert set(before.tolist()) == {int(words[1])} and len(before) == longest - 1  # it fills a piece alone


def test_labelled_texts_are_one_piece_each_with_their_label_among_the_candidates() -> None:
    texts = [text(TEXTS[0], "b"), text("a", "a"), text(TEXTS[0] * 3, "b")]
    data = EncodedTexts(texts, TOKENIZERS[0], 8, ["a", "b"])
    assert data.ids.lengths.tolist() == [8, 2, 8]
    batch = data.batch([[0, 1], [2]])
    assert batch.gold.tolist() == [[False, True], [True, False], [False, True]]
    assert batch.present.all()
    assert not len(batch.query_positions) and not len(batch.candidate_positions)
    assert batch.words[0].tolist()[8:10] == [-1, 0]
    with pytest.raises(UserError, match=r"label: 'c' of 'a' must be one of a, b"):
        EncodedTexts([text("a", "c")], TOKENIZERS[0], 8, ["a", "b"])


def test_a_row_must_have_room_for_a_token() -> None:
    with pytest.raises(UserError, match=r"batching.row_tokens \(1\) must be at least 2 for texts"):
        EncodedTexts([text("a")], TOKENIZERS[0], 1)


def test_what_was_encoded_is_kept_and_what_decides_it_changes_the_place(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [text(one) for one in TEXTS]
    first = pieces(EncodedTexts(texts, TOKENIZERS[0], 8))
    with monkeypatch.context() as patched:
        patched.setattr(module, "_encode", None)
        assert pieces(EncodedTexts(texts, TOKENIZERS[0], 8)) == first
    EncodedTexts(texts, TOKENIZERS[0], 9)
    EncodedTexts(texts, TOKENIZERS[1], 8)
    EncodedTexts(texts[:2], TOKENIZERS[0], 8)
    EncodedTexts([text(one, "a") for one in TEXTS], TOKENIZERS[0], 8, ["a"])
    assert len(list(cache.iterdir())) == 5


def test_a_damaged_cache_is_reported(cache: Path) -> None:
    EncodedTexts([text("a")], TOKENIZERS[0], 8)
    (path,) = cache.iterdir()
    path.write_bytes(b"half")
    with pytest.raises(UserError, match=r"the cache is damaged .* delete this file"):
        EncodedTexts([text("a")], TOKENIZERS[0], 8)


def test_keeping_spreads_the_pieces_evenly() -> None:
    data = EncodedTexts(
        [text(f"number {number}", "ab"[number % 2]) for number in range(10)], TOKENIZERS[0], 16, ["a", "b"]
    )
    whole = pieces(data)
    data.subsample(20)
    assert pieces(data) == whole
    data.subsample(5)
    assert pieces(data) == whole[::2]
    assert data.gold.tolist() == [[True, False]] * 5
    assert len(data.batch([[0, 4]]).items) == 2


def test_words_are_cut_anew_in_every_text_whatever_was_read_before() -> None:
    words = [
        f"{first}{second}" for first in ("bak", "far", "min", "sing", "teach") for second in ("er", "ing", "s", "t")
    ]
    texts = [text(f"the {word} {number} 在公园") for number in range(40) for word in words]
    tokenizer = word_vocabulary([*(one.text for one in texts), *["the"] * 2000], ["公园"], only_seen=True)

    def tokens(share: float, seed: int) -> int:
        return len(EncodedTexts(texts, DroppingTokenizer(tokenizer, share, seed), 32).ids.flat)

    whole = len(EncodedTexts(texts, tokenizer, 32).ids.flat)
    assert tokens(0.5, 0) == tokens(0.5, 0) > tokens(0.2, 0) > whole
    data = EncodedTexts(texts, DroppingTokenizer(tokenizer, 0.5, 0), 32)
    read = pieces(data)
    whole_words = [sum(tokenizer.encode(word).ids[1] in ids for ids, _ in read) for word in words]
    assert sum(5 < times < 35 for times in whole_words) >= 10  # of the forty texts with each word

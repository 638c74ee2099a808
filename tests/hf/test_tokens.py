"""Tests of the characters of a text that each token of a transformers tokenizer covers."""

from __future__ import annotations

import json
import re
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from tiny import TEXTS, tiny, transformers
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

import anaphora
from anaphora.base.errors import UserError
from anaphora.hf.tokens import TextReader

BYTES = [f"<0x{number:02X}>" for number in range(256)]
TEXT = "小红 met [MASK]小明."


def metaspace(scheme: str) -> Tokenizer:
    backend = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True))
    backend.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=scheme)
    backend.decoder = decoders.Metaspace(prepend_scheme=scheme)
    return backend


def prepended() -> Tokenizer:
    """Return a tokenizer that prepends a space before splitting the text, as in Llama."""
    backend = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True))
    backend.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    parts = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    backend.decoder = decoders.Sequence(parts)
    return backend


def byte_level(trim: bool, decoder: bool = True) -> Tokenizer:
    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    backend.post_processor = processors.ByteLevel(trim_offsets=trim)
    if decoder:
        backend.decoder = decoders.ByteLevel()
    return backend


KINDS: dict[str, Any] = {
    "metaspace, always": lambda: metaspace("always"),
    "metaspace, first": lambda: metaspace("first"),
    "prepended": prepended,
    "bytes": lambda: byte_level(trim=False),
    "bytes, trimmed": lambda: byte_level(trim=True),
    "bytes without a decoder": lambda: byte_level(trim=False, decoder=False),
}


def reader(kind: str) -> TextReader:
    backend = KINDS[kind]()
    special = ["<unk>", "[MASK]", *BYTES]
    options: dict[str, Any] = {"initial_alphabet": pre_tokenizers.ByteLevel.alphabet()} if "bytes" in kind else {}
    trainer = trainers.BpeTrainer(vocab_size=600, special_tokens=special, show_progress=False, **options)
    backend.train_from_iterator(["met met met"], trainer)
    own = transformers.PreTrainedTokenizerFast(tokenizer_object=backend, unk_token="<unk>", mask_token="[MASK]")
    return TextReader(own)


@pytest.mark.parametrize("kind", KINDS)
def test_a_blank_before_a_character_is_no_part_of_it(kind: str) -> None:
    """The subwords of a character form one word, and a separate space is a token with its own name."""
    tokens = reader(kind).read(TEXT)
    pieces: dict[str, set[int]] = {}
    for (start, end), word in zip(tokens.spans, tokens.words, strict=True):
        pieces.setdefault(TEXT[start:end], set()).add(word)
    assert [TEXT[start:end] for start, end in tokens.spans].count("小") == 6  # three bytes, twice
    assert pieces.pop("") == {-1}
    assert set(tokens.special) == {"Ġ" if "bytes" in kind else "▁"}
    assert {piece: len(words) for piece, words in pieces.items() if piece != "小"} == {
        piece: 1 for piece in pieces if piece != "小"
    }
    assert len(pieces["小"]) == 2


def test_a_token_of_blanks_has_a_name_that_can_be_seen() -> None:
    names = ("<unk>", "met", "\n", "\t", " ")
    backend = Tokenizer(models.WordLevel({name: number for number, name in enumerate(names)}, "<unk>"))
    backend.pre_tokenizer = pre_tokenizers.Split(Regex(r"\s"), "isolated")
    tokens = TextReader(transformers.PreTrainedTokenizerFast(tokenizer_object=backend, unk_token="<unk>")).read(
        "met\nmet\tmet met"
    )
    assert tokens.special == ("\\n", "\\t", "▁")


@pytest.mark.parametrize("kind", KINDS)
def test_a_letter_that_is_written_as_a_mark_of_blanks_stays_a_letter(kind: str) -> None:
    tokens = reader(kind).read("Ġanni")
    assert {"Ġanni"[start:end] for start, end in tokens.spans} == {"", *"Ġani"}
    assert [span for span in tokens.spans if span == (0, 1)] == [(0, 1)] * 2  # its two bytes


def adding(kind: str, *, adds: bool = True) -> TextReader:
    """Return a reader whose tokenizer puts <s> before a text and </s> behind it."""
    own = reader(kind).tokenizer
    own.add_special_tokens({"bos_token": "<s>", "eos_token": "</s>"})
    if adds:
        special = [(name, own.convert_tokens_to_ids(name)) for name in ("<s>", "</s>")]
        template = processors.TemplateProcessing(
            single="<s> $A </s>", pair="<s> $A </s> $B </s>", special_tokens=special
        )
        own.backend_tokenizer.post_processor = template
    return TextReader(own)


@pytest.mark.parametrize("kind", KINDS)
def test_a_special_token_that_a_chat_template_has_written_is_read_twice_and_named_once(
    kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for text, token in (("<s>met met", "<s>"), ("met met</s>", "</s>")):
        read = adding(kind)
        assert read.read("met met").ids == tuple(read.tokenizer("met met")["input_ids"])
        assert capsys.readouterr().out == ""
        for _ in range(2):
            assert list(read.read(text).ids) == read.tokenizer(text)["input_ids"]
        assert capsys.readouterr().out == (
            f"text: it contains {token}, which the tokenizer adds too, so that the model reads it twice; "
            f"leave {token} out\n"
        )
        adding(kind, adds=False).read(text)
        assert capsys.readouterr().out == ""


def test_the_blank_has_a_column_of_its_own_and_the_name_keeps_its_weight() -> None:
    backend = Tokenizer(
        models.Unigram([("<unk>", 0.0), ("▁", -1.0), *((one, -2.0) for one in "小红推了明。")], unk_id=0)
    )
    backend.pre_tokenizer = pre_tokenizers.Metaspace()
    backend.decoder = decoders.Metaspace()
    own = transformers.PreTrainedTokenizerFast(tokenizer_object=backend, unk_token="<unk>")
    text = "小红推了小明。"
    for by in ("word", "token"):
        maps = anaphora.attention(tiny("bert"), text, "小明", ["小红"], by=by, tokenizer=own)
        assert maps.words == ("▁", *text)
        assert maps.row("小明", 0, 0).to("小红") == pytest.approx(
            float(maps.weights[0, 0, 5:7, 1:3].mean(axis=0).sum())
        )
    assert maps.without_special().words == tuple(text)


def test_tokens_of_other_kinds_keep_their_places() -> None:
    from tiny import tokenizer

    read = TextReader(tokenizer())
    for text in TEXTS:
        tokens = read.read(text)
        assert "".join(text[start:end] for start, end in tokens.spans) == text.replace(" ", "")


def unknowing() -> Any:
    """Return a tokenizer without the characters of the second name."""
    characters = {one: number for number, one in enumerate(("[UNK]", "小", "红", "推", "了", "。", "他", "Anna"))}
    backend = Tokenizer(models.WordPiece(characters, unk_token="[UNK]"))
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.normalizer = normalizers.BertNormalizer(lowercase=False)
    return transformers.PreTrainedTokenizerFast(tokenizer_object=backend)  # which states no unknown token of its own


def test_characters_that_the_vocabulary_lacks_are_named(tmp_path: Path) -> None:
    text = "小红推了小明 Emma。"
    maps = anaphora.attention(tiny("bert"), text, tokenizer=unknowing())
    assert maps.unread == ("明", "Emma")
    assert "not in the vocabulary: 明, Emma" in repr(maps)
    for language, line in (
        ("en", "the weights of “明”, “Emma”: the model does not know"),
        ("zh", "不要相信“明”、“Emma”的权重"),
    ):
        page = maps.page(tmp_path / f"{language}.html", language).path.read_text(encoding="utf-8")
        assert line in re.sub(r"</?span[^>]*>", "", page)  # which say the language of a word
    known = anaphora.attention(tiny("bert"), "小红推了他。", tokenizer=unknowing())
    assert known.unread == () and "vocabulary" not in repr(known)


def test_characters_without_any_token_are_named_too() -> None:
    backend = Tokenizer(models.BPE(vocab={"A": 0, "n": 1, "a": 2}, merges=[]))
    backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokens = TextReader(transformers.PreTrainedTokenizerFast(tokenizer_object=backend)).read("Anna 红 a")
    assert tokens.unread == ((5, 6),)


@pytest.mark.parametrize("marks", [{}, {"continuing_subword_prefix": "##"}, {"end_of_word_suffix": "</w>"}])
def test_a_token_that_is_given_the_place_of_a_dropped_character_is_an_error(marks: dict[str, str]) -> None:
    before, behind = marks.get("continuing_subword_prefix", ""), marks.get("end_of_word_suffix", "")
    letters = ["A", "n", "a", ",", f"{before}n", f"{before}a", f"{before},", f"a{behind}", f",{behind}"]
    backend = Tokenizer(
        models.BPE(vocab={one: place for place, one in enumerate(dict.fromkeys(letters))}, merges=[], **marks)
    )
    backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    reader = TextReader(transformers.PreTrainedTokenizerFast(tokenizer_object=backend))
    assert reader.read("Anna, a").unread == ()
    with pytest.raises(UserError, match=r"drops a character .* the place of '红'"):
        reader.read("An红a, a")


def without_some_bytes(kind: str) -> Any:
    """Return a byte-level tokenizer that has learned only the bytes of one English sentence."""
    backend = Tokenizer(models.BPE(byte_fallback=kind == "fallback"))
    if kind == "normalizer":
        backend.normalizer = normalizers.ByteLevel()
    elif kind == "pre-tokenizer":
        backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    else:
        backend.normalizer = normalizers.Replace(" ", "▁")
    backend.train_from_iterator(["Anna, she was weak."], trainers.BpeTrainer(vocab_size=99, show_progress=False))
    return transformers.PreTrainedTokenizerFast(tokenizer_object=backend, mask_token="<mask>")


def test_the_mask_in_a_text_is_ordinary_text_for_a_tokenizer_without_one() -> None:
    backend = byte_level(trim=True)
    backend.train_from_iterator(
        ["met"], trainers.BpeTrainer(initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False)
    )
    text = "a[MASK]b"
    tokens = TextReader(transformers.PreTrainedTokenizerFast(tokenizer_object=backend)).read(text)
    assert [text[start:end] for start, end in tokens.spans if start < end] == list(text)


@pytest.mark.parametrize("kind", ["pre-tokenizer", "normalizer", "fallback"])
def test_bytes_that_a_vocabulary_lacks_are_dropped_too(kind: str) -> None:
    reader = TextReader(without_some_bytes(kind))
    assert reader.read("Anna, [MASK] was weak. ").unread == ()
    with pytest.raises(UserError, match="drops a character that it does not know and gives the token"):
        reader.read("An红na, she was weak.")


@pytest.mark.parametrize("reads", ["words with places on a page", "known words alone"])
def test_a_text_that_a_tokenizer_cannot_read_ends_in_one_line(reads: str) -> None:
    backend = Tokenizer(models.WordLevel({"Anna": 0, "she": 1}))
    backend.pre_tokenizer = pre_tokenizers.Whitespace()
    own = transformers.PreTrainedTokenizerFast(tokenizer_object=backend)
    if reads == "words with places on a page":
        own = transformers.LayoutLMv3Tokenizer()
    with pytest.raises(
        UserError, match=rf"text \('Anna saw'\): the tokenizer \({type(own).__name__}\) cannot read it: "
    ):
        TextReader(own).read("Anna saw")


def test_the_token_for_unknown_characters_is_the_one_that_the_model_writes() -> None:
    """Some tokenizers declare another unknown token than their unigram model uses."""
    backend = Tokenizer(models.Unigram([("<unk>", 0.0), ("</s>", 0.0), ("A", -1.0), ("▁", -1.0)], unk_id=1))
    backend.pre_tokenizer = pre_tokenizers.Metaspace()
    own = transformers.PreTrainedTokenizerFast(tokenizer_object=backend, unk_token="<unk>")
    assert TextReader(own).read("A 红 A").unread == ((2, 3),)


def test_scores_name_the_mentions_that_are_not_read(tmp_path: Path) -> None:
    path = tmp_path / "items.jsonl"
    people = [("小红", "小明"), ("小明", "小红"), ("小红", "小了")] * 10
    items = [
        {
            "text": f"{one}推了{two}。他推{number}。",
            "language": "zh",
            "pronoun": [7, 8],
            "candidates": [[0, 2], [4, 6]],
            "antecedents": [0],
        }
        for number, (one, two) in enumerate(people)
    ]
    path.write_text("\n".join(json.dumps(item, ensure_ascii=False) for item in items), encoding="utf-8")
    scores = anaphora.score(tiny("bert"), data="jsonl", path=path, tokenizer=unknowing(), causal_items=0)
    assert scores.unread is not None and scores.unread.words == ("明",)
    assert 0 < scores.unread.items < scores.unread.of
    assert "not in the vocabulary: 明" in repr(scores)
    page = scores.page(tmp_path / "page.html").path.read_text(encoding="utf-8")
    assert f"of {scores.unread.of} items, {scores.unread.items} have a pronoun or candidate with 明" in page


@pytest.mark.parametrize(
    "normalizer", [normalizers.BertNormalizer(), normalizers.NFC(), normalizers.BertNormalizer(False)]
)
def test_an_accent_written_apart_is_part_of_its_word(normalizer: Any) -> None:
    """The tokenizer drops it, composes it with the letter, or reads it as a token."""
    known = {one: number for number, one in enumerate(("[UNK]", "zoe", "Zo\u00eb", "Zoe\u0308", "met", "he"))}
    backend = Tokenizer(models.WordPiece(known, unk_token="[UNK]"))
    backend.normalizer, backend.pre_tokenizer = normalizer, pre_tokenizers.WhitespaceSplit()
    text = "Zoe\u0308 met he"
    tokens = TextReader(transformers.PreTrainedTokenizerFast(tokenizer_object=backend)).read(text)
    assert [text[slice(*span)] for span in tokens.spans] == text.split()
    assert not tokens.unread


@pytest.mark.parametrize("word", ["\u845b\U000e0100", "\u0917\u0941\u0930\u0941"], ids=["variation", "vowel_sign"])
def test_a_dropped_mark_of_combining_class_zero_is_part_of_its_word(word: str) -> None:
    known = {one: number for number, one in enumerate(("[UNK]", word[0], word[::2], "met"))}
    backend = Tokenizer(models.WordPiece(known, unk_token="[UNK]"))
    backend.normalizer, backend.pre_tokenizer = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
    text = f"{word} met"
    tokens = TextReader(transformers.PreTrainedTokenizerFast(tokenizer_object=backend)).read(text)
    assert [text[slice(*span)] for span in tokens.spans] == [word, "met"]
    assert not tokens.unread


@pytest.mark.parametrize(
    "word", ["\u1100\u1161\u11a8", "\uff76\uff9e"], ids=["Korean syllable", "half-width sound mark"]
)
def test_letters_that_a_tokenizer_composes_are_part_of_their_word(word: str) -> None:
    composed = unicodedata.normalize("NFKC", word)
    backend = Tokenizer(models.WordPiece({"[UNK]": 0, composed: 1, f"##{composed}": 2, "met": 3}, unk_token="[UNK]"))
    backend.normalizer, backend.pre_tokenizer = normalizers.NFKC(), pre_tokenizers.WhitespaceSplit()
    text = f"{word}{word} met"
    tokens = TextReader(transformers.PreTrainedTokenizerFast(tokenizer_object=backend)).read(text)
    assert [text[slice(*span)] for span in tokens.spans] == [word, word, "met"]
    assert not tokens.unread


def test_words_in_one_token_have_no_weight_from_one_to_the_other() -> None:
    backend = Tokenizer(models.WordLevel({"[UNK]": 0, "met Emma": 1, "Anna": 2, ".": 3}, unk_token="[UNK]"))
    backend.pre_tokenizer = pre_tokenizers.Split("met Emma", "isolated")
    words = transformers.PreTrainedTokenizerFast(tokenizer_object=backend, unk_token="[UNK]", pad_token="[UNK]")
    maps = anaphora.attention(tiny("bert"), "met Emma", tokenizer=words)
    with pytest.raises(UserError, match="'met' and 'Emma' are parts of 'met Emma', which is one word of these maps"):
        maps.rank("met", "Emma")
    assert maps.rank("met", "met")[0].weight == 1
    assert maps.rank("met Emma", "Emma")[0].weight == 1
    assert maps.rank(0, 0)[0].weight == 1

"""Tests of two texts as a pair, with the tokenizer's separators."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
import torch
from chromium import CHROMIUM, in_browser
from tiny import TEXTS, random_model, tiny, transformers
from tiny import tokenizer as of_one_text
from tokenizers import Tokenizer, processors

import anaphora
from anaphora.analysis.causal.interventions import knockout_edges
from anaphora.analysis.results.scores import Head
from anaphora.api import SentenceAttention
from anaphora.base.errors import UserError
from anaphora.hf.reader import open_model

FIRST, SECOND = "Anna helped Emma.", "She was [MASK] weak."
CHINESE = ("小红推了小明，", "因为他很生气。")
PARTS = [(0, 0), (0, 1), (1, 0), (1, 1)]


@cache
def tokenizer() -> Any:
    """Return the tiny tokenizer with BERT's template for pairs."""
    backend = Tokenizer.from_str(of_one_text().backend_tokenizer.to_str())
    backend.post_processor = processors.TemplateProcessing(
        "[CLS]:0 $A:0 [SEP]:0", "[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    names = {f"{name}_token": f"[{name.upper()}]" for name in ("pad", "unk", "cls", "sep", "mask")}
    inputs = ["input_ids", "token_type_ids", "attention_mask"]
    return transformers.PreTrainedTokenizerFast(tokenizer_object=backend, model_input_names=inputs, **names)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("models") / "tiny-bert"
    tiny("bert").save_pretrained(path)
    tokenizer().save_pretrained(path)
    return path


def pair(family: str = "bert", **given: Any) -> SentenceAttention:
    return anaphora.attention(tiny(family), FIRST, second=SECOND, tokenizer=tokenizer(), **given)


@pytest.mark.parametrize("family", ["bert", "distilbert", "roberta", "deberta-v2", "gpt2"])
def test_maps_of_a_pair_are_those_of_the_tokenizers_own_encoding(family: str) -> None:
    """The encoding includes token types if the model has any."""
    encoding = tokenizer()(FIRST, SECOND, return_tensors="pt")
    if family in ("distilbert", "deberta-v2"):
        encoding.pop("token_type_ids")
    with torch.inference_mode():
        expected = tiny(family, "eager")(**encoding, output_attentions=True).attentions
    maps = pair(family, by="token")
    assert np.abs(maps.weights - torch.cat(expected).numpy()).max() < 1e-5


def test_the_model_is_told_which_text_a_token_is_of() -> None:
    opened = open_model(tiny("bert"), tokenizer())
    tokens = opened.tokenize(FIRST, SECOND)
    place = len(tokens.ids) - tokens.types.count(1)
    assert tokens.types == (0,) * place + (1,) * (len(tokens.ids) - place) and place > 0
    types = opened.padded([opened.tokenize(TEXTS[1]), tokens])["token_type_ids"]
    assert types[0].tolist() == [0] * types.shape[1]
    assert types[1].tolist() == [*tokens.types, *[0] * (types.shape[1] - len(tokens.types))]
    assert "token_type_ids" not in opened.padded([opened.tokenize(TEXTS[1])])


@pytest.mark.parametrize("second", [None, SECOND])
def test_types_of_a_single_text_that_are_not_all_0_are_given_to_the_model(second: str | None) -> None:
    """XLNet's [CLS] is last and has a type of its own, on which all maps depend; its edits must act there too."""
    backend = Tokenizer.from_str(of_one_text().backend_tokenizer.to_str())
    backend.post_processor = processors.TemplateProcessing(
        "$A:0 [SEP]:0 [CLS]:2", "$A:0 [SEP]:0 $B:1 [SEP]:1 [CLS]:2", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    names = {f"{name}_token": f"[{name.upper()}]" for name in ("pad", "unk", "cls", "sep", "mask")}
    own = transformers.PreTrainedTokenizerFast(
        tokenizer_object=backend, model_input_names=tokenizer().model_input_names, **names
    )
    model = random_model("xlnet", vocab_size=120, d_model=32, n_layer=2, n_head=4, d_inner=64, initializer_range=0.3)
    encoding = [own(FIRST), own(FIRST, second)][second is not None]
    with torch.inference_mode():
        inputs = {name: torch.tensor([row]) for name, row in encoding.items()}
        expected = torch.cat(model(**inputs, output_attentions=True).attentions).numpy()
    opened = open_model(model, own)
    tokens = opened.tokenize(FIRST, second)
    assert tokens.types == tuple(encoding["token_type_ids"]) and tokens.types[-1] == 2
    assert np.abs(opened.token_maps(tokens) - expected).max() < 1e-6
    cut = opened.token_maps(tokens, [knockout_edges({Head(1, 2): (torch.tensor([4]), torch.tensor([1]))})])
    assert expected[1, 2, 4, 1] > 0 and cut[1, 2, 4, 1] == 0


def test_an_edit_of_a_pair_acts_on_the_pair() -> None:
    opened = open_model(tiny("bert"), tokenizer())
    tokens = opened.tokenize(FIRST, SECOND)
    plain = opened.token_maps(tokens)
    cut = opened.token_maps(tokens, [knockout_edges({Head(1, 2): (torch.tensor([6]), torch.tensor([1]))})])
    assert plain[1, 2, 6, 1] > 0 and cut[1, 2, 6, 1] == 0
    plain[1, 2, 6] = cut[1, 2, 6] = 0
    assert np.abs(plain - cut).max() < 1e-6  # so the pass with the edit knows the types too


def test_places_and_words_are_those_of_both_texts() -> None:
    maps = pair(pronoun="She", candidates=["Anna", "Emma"])
    assert maps.text == f"{FIRST} {SECOND}"
    assert maps.words == (
        *("[CLS]", "Anna", "helped", "Emma", ".", "[SEP]"),
        *("She", "was", "[MASK]", "weak", ".", "[SEP]"),
    )
    assert maps.segments == (0,) * 6 + (1,) * 6
    assert maps.example is not None and maps.text[slice(*maps.example.pronoun)] == "She"
    assert maps.rank(".:2", ".:1")[0].weight > 0
    without = maps.without_special()
    assert without.segments == (0,) * 4 + (1,) * 5
    chinese = anaphora.attention(tiny("bert"), CHINESE[0], second=CHINESE[1], tokenizer=tokenizer())
    assert "".join(chinese.without_special().words) == "".join(CHINESE)
    starts = [start for start, end in chinese.spans if end > start]
    assert list(chinese.without_special().segments) == [int(start > len(CHINESE[0])) for start in starts]


def test_the_parts_between_texts_make_up_the_whole() -> None:
    maps = pair()
    parts = [maps.between(*part).weights for part in PARTS]
    assert np.array_equal(sum(parts), maps.weights)
    assert all((part.sum(axis=(2, 3)) > 0).all() for part in parts)
    across = maps.between(1, 0)
    top, _ = across.row("She", 0, 0).top(1)[0]
    assert top in ("[CLS]", "Anna", "helped", "Emma", ".", "[SEP]")
    assert across.row("Anna", 0, 0).weights.sum() == 0


def test_what_reads_no_pair_is_refused_in_one_line(own_run: Path) -> None:
    with pytest.raises(UserError, match=r"second \('She .*'\): the tokenizer \(.*\) puts nothing between two texts"):
        anaphora.attention(tiny("bert"), FIRST, second=SECOND, tokenizer=of_one_text())
    with pytest.raises(UserError, match=r"second \('She .*'\): .* is a run, which reads one text; write both in text"):
        anaphora.attention(own_run, FIRST, second=SECOND)
    for second, message in (("  ", "second: it is empty"), (3, r"second \(3\)")):
        with pytest.raises(UserError, match=message):
            anaphora.attention(tiny("bert"), FIRST, second=second, tokenizer=tokenizer())  # type: ignore[arg-type]
    with pytest.raises(UserError, match=r"it has 2\d\d tokens, but .* takes at most 64; shorten"):
        anaphora.attention(tiny("bert"), FIRST, second="a " * 200, tokenizer=tokenizer())
    with pytest.raises(UserError, match="between: these maps are of one text"):
        anaphora.attention(tiny("bert"), FIRST, tokenizer=tokenizer()).between(0, 1)
    with pytest.raises(UserError, match=r"attended \(2\) must be 0, the first text, or 1, the second"):
        pair().between(0, 2)


def test_the_command_writes_pages_and_tables_of_a_pair(
    folder: Path, script: Callable[..., Any], tmp_path: Path
) -> None:
    given = ("attention", f"run={folder}", f"text={FIRST}", f"second={SECOND}", "candidates=[Anna,Emma]")
    table = script(*given, f"output={tmp_path / 'maps.parquet'}")
    assert table.status == 0 and "from She to Anna" in table.out
    assert pandas.read_parquet(tmp_path / "maps.parquet")["starts"][0].max() > len(FIRST)
    page = script(*given, f"output={tmp_path / 'page.html'}")
    assert page.status == 0 and '"segments":' in (tmp_path / "page.html").read_text(encoding="utf-8")
    picture = script(*given, f"output={tmp_path / 'maps.png'}")
    assert picture.status == 2 and "second is for a page or a table" in picture.err
    refused = script("attention", f"run={folder}", f"text={FIRST}", "second=", f"output={tmp_path / 'page.html'}")
    assert refused.status == 2 and refused.err.count("\n") == 1 and "second" in refused.err


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")
@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_page_shows_the_weights_between_two_texts(language: str, tmp_path: Path) -> None:
    maps = pair()
    page = maps.page(tmp_path / "page.html", language).path.read_text(encoding="utf-8")
    names = re.search(r'<select id="between">(.*?)</select>', page)
    assert names is not None and ("第一段" if language == "zh" else "first") in names[1]
    seen = in_browser(
        page,
        """
        const seen = {}, words = () => [...at("row-words").querySelectorAll("button")];
        for (const part of given.parts) {
          at("between").value = part; at("between").dispatchEvent(new Event("change")); await pause();
          seen[part] = {};
          for (const word of given.words) {
            words()[word].click(); await pause();
            seen[part][word] = words().map((one) => one.lastChild.textContent ? 1 : 0);
          }
        }
        return { seen, hidden: at("between").closest("label").hidden, link: location.hash };
        """,
        {"parts": ["", *(f"{one}{other}" for one, other in PARTS)], "words": [1, 6]},
        tmp_path,
    )
    assert not seen["hidden"] and "between=11" in seen["link"]
    for attending, word in enumerate(["1", "6"]):
        assert seen["seen"][""][word] == [1] * 12
        for one, other in PARTS:
            expected = [int(one == attending and segment == other) for segment in maps.segments]
            assert seen["seen"][f"{one}{other}"][word] == expected


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")
def test_a_page_of_one_text_has_no_choice_between_texts(tmp_path: Path) -> None:
    path = anaphora.attention(tiny("bert"), FIRST, tokenizer=tokenizer()).page(tmp_path / "page.html").path
    body = 'return at("between").closest("label").hidden;'
    assert in_browser(path.read_text(encoding="utf-8"), body, {}, tmp_path) is True

from __future__ import annotations

import re
import shutil
import socket
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tiny import (
    GROUPED,
    NOT_EDITED,
    SETTINGS,
    SIZE,
    TEXTS,
    VERSION,
    tiny,
    tiny_folder,
    tiny_language_model,
    tokenizer,
    transformers,
)
from tokenizers import Tokenizer

import anaphora
from anaphora.analysis.causal.interventions import (
    knockout_edges,
    replace_head_outputs,
    uniform_weights,
    zero_edge_values,
)
from anaphora.analysis.results.scores import Head
from anaphora.base.errors import UserError
from anaphora.data.own_sentence import example_from_query
from anaphora.hf import interface, reader
from anaphora.hf.reader import open_model

DECODERS = {
    *("bloom", "diffllama", "gemma2", "gpt2", "gpt_bigcode", "gpt_neox", "llama", "mistral", "opt", "phi"),
    *("qwen2", "qwen3"),
}
IN_EAGER_MODE = {"bloom", "deberta-v2", "diffllama", "mpnet"} | ({"t5"} if VERSION < (5, 16) else set())


@pytest.mark.parametrize("family", sorted(SETTINGS))
def test_maps_are_those_of_eager_attention(family: str) -> None:
    """This includes a text padded to the length of another, and the rows of pronouns only."""
    opened = open_model(tiny(family), tokenizer())
    assert (opened.reading.implementation == interface.NAME) == (family not in IN_EAGER_MODE)
    assert opened.is_decoder == (family in DECODERS)
    tokens, eager = [opened.tokenize(text) for text in TEXTS], tiny(family, "eager")
    eager = eager.get_encoder() if family in ("bart", "t5") else eager
    whole = opened.run(tokens)
    with torch.inference_mode():
        expected = eager(**opened.padded(tokens), output_attentions=True).attentions
    assert len(whole) == len(expected) == opened.layers
    for one, other in zip(whole, expected, strict=True):
        for row, own in enumerate(tokens):
            length = len(own.ids)
            part = (row, slice(None), slice(length), slice(length))
            assert one[part].shape == (opened.heads, length, length)
            assert torch.allclose(one[part], other[part], atol=1e-5)
    examples = [
        example_from_query(TEXTS[0], "she", ["Anna", "Emma"]),
        example_from_query(TEXTS[1], "unbelievably", ["The old man"]),
    ]
    records = list(opened.records(examples))
    for row, (record, own) in enumerate(zip(records, tokens, strict=False)):
        positions = own.covering(examples[row].pronoun)
        rows = torch.stack([layer[row, :, positions, : len(own.ids)].mean(dim=1) for layer in expected])
        assert np.allclose(record.weights, rows.numpy(), atol=1e-5)


def test_a_text_of_several_mentions_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "_ITEMS_AT_ONCE", 3)
    opened = open_model(tiny("bert"), tokenizer())
    examples = [
        example_from_query(text, pronoun, [])
        for text, pronoun in ((TEXTS[0], "she"), (TEXTS[1], "he"), (TEXTS[0], "Emma"), (TEXTS[2], "他"))
    ]
    passes: list[int] = []
    together = dict(opened.numbered_records(examples, passes.append))
    assert sorted(together) == [0, 1, 2, 3] and sum(passes) == 3 and len(passes) == 2
    for number, example in enumerate(examples):
        (alone,) = opened.records([example])
        assert together[number].example is example
        assert np.allclose(together[number].weights, alone.weights, atol=1e-6)


@pytest.mark.parametrize("family", sorted(SETTINGS.keys() - set(NOT_EDITED)))
def test_an_edge_is_cut_and_a_head_switched_off(family: str) -> None:
    opened = open_model(tiny(family), tokenizer())
    tokens = opened.tokenize(TEXTS[0])
    plain = opened.run([tokens])
    place = (torch.tensor([6]), torch.tensor([1]))
    cut = opened.editable.read([tokens], [knockout_edges({Head(1, 2): place})])[0]
    assert plain[1][0, 2, 6, 1] > 0 and cut[1][0, 2, 6, 1] == 0
    assert torch.allclose(cut[1][0, 2, 6].sum(), torch.tensor(1.0))
    assert torch.allclose(cut[1][0, :2], plain[1][0, :2], atol=1e-6)
    without_value = opened.editable.read([tokens], [zero_edge_values({Head(1, 2): place})])[0]
    assert without_value[1][0, 2, 6, 1] == 0 and without_value[1][0, 2, 6].sum() < 1
    even = opened.editable.read([tokens], [uniform_weights([Head(0, 0)])])[0]
    seen = 7 if opened.is_decoder else len(tokens.ids)
    assert torch.allclose(even[0][0, 0, 6, :seen], torch.full((seen,), 1 / seen))
    off = opened.editable.read([tokens], [replace_head_outputs({Head(0, 0): torch.zeros(())})])[0]
    assert torch.allclose(off[0], plain[0], atol=1e-6) and not torch.allclose(off[1], plain[1])


def test_the_users_model_is_left_as_it_was() -> None:
    model = tiny("bert")
    before = model(torch.tensor([[2, 5, 6, 3]])).last_hidden_state
    anaphora.attention(model, TEXTS[0], tokenizer=tokenizer())
    assert model.config._attn_implementation == "sdpa"
    assert torch.equal(model(torch.tensor([[2, 5, 6, 3]])).last_hidden_state, before)


@pytest.mark.parametrize("family", ["bert", "mpnet", "bart"])
def test_reading_ignores_dropout_and_leaves_every_part_of_a_model_in_its_mode(family: str) -> None:
    model = tiny(family)
    expected = anaphora.attention(model, TEXTS[0], tokenizer=tokenizer()).weights
    model.train()
    model.get_input_embeddings().eval()
    before = [part.training for part in model.modules()]
    assert True in before and False in before
    np.testing.assert_array_equal(anaphora.attention(model, TEXTS[0], tokenizer=tokenizer()).weights, expected)
    assert [part.training for part in model.modules()] == before


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_folder(tmp_path_factory, "bert")


def test_a_folder_is_read_in_one_call(folder: Path, tmp_path: Path) -> None:
    maps = anaphora.attention(folder, TEXTS[1], "he", ["The old man", "park"])
    assert (maps.model, maps.words[:2], maps.words[-1], maps.chosen) == ("tiny-bert", ("[CLS]", "The"), "[SEP]", None)
    ranked = maps.rank("he", "The old man")
    assert len(ranked) == 8 and ranked[0].weight == max(one.weight for one in ranked)
    first = ranked[0]
    assert maps.row("he", first.layer, first.head).to("The old man") == pytest.approx(first.weight)
    with pytest.raises(UserError, match=r"tiny-bert: no head has been chosen on a development split.*rank\(\)"):
        maps.row("he")
    page = maps.page(tmp_path / "page.html")
    assert "unbelievably" in page.path.read_text(encoding="utf-8")
    assert "https://" not in page.path.read_text(encoding="utf-8")
    assert "<iframe srcdoc" in page._repr_html_()


def test_the_page_of_a_decoder_says_what_the_pronoun_sees_and_scores_the_last_word(tmp_path: Path) -> None:
    text = "Because she was weak, Anna helped Emma."
    maps = anaphora.attention(tiny("gpt2"), text, "she", ["Anna", "Emma"], tokenizer=tokenizer())
    page = maps.page(tmp_path / "page.html").path.read_text(encoding="utf-8")
    assert "What follows is not visible to the pronoun" in page
    heaviest = maps.rank(maps.words.index("."), "Emma")[0]
    assert f"{heaviest.layer}.{heaviest.head}  {heaviest.weight:.2f}" in page
    assert page.count("not visible</td>") == 2  # both candidates stand behind the pronoun
    alone = anaphora.attention(tiny("gpt2"), text, tokenizer=tokenizer()).page(tmp_path / "alone.html").path
    assert "<td" not in alone.read_text(encoding="utf-8").partition("</header>")[0]
    encoder = anaphora.attention(tiny("bert"), text, tokenizer=tokenizer()).page(tmp_path / "encoder.html").path
    assert "A decoder" not in encoder.read_text(encoding="utf-8").partition("</header>")[0]


def test_a_page_may_be_chinese(tmp_path: Path) -> None:
    maps = anaphora.attention(tiny("gpt2"), TEXTS[2], "他", ["小红", "小明"], tokenizer=tokenizer())
    page = maps.page(tmp_path / "page.html", language="zh").path.read_text(encoding="utf-8")
    assert '<html lang="zh">' in page and "注意力：所有的层和头" in page and "这是解码器" in page and "到小明" in page
    shown = re.sub(r"<(script|style)\b.*?</\1>", "", page, flags=re.DOTALL)
    english = [text for text in re.findall(r">([^<>]+)<", shown) if re.search("[A-Za-z]{3,}", text)]
    assert [text for text in english if not re.search("JavaScript|Enter", text)] == []
    with pytest.raises(UserError, match=r"language \('fr'\) must be one of en, zh"):
        maps.page(tmp_path / "page.html", language="fr")


def test_a_mask_in_a_text_is_one_token(folder: Path) -> None:
    maps = anaphora.attention(folder, "Anna left because [MASK] was tired.")
    assert maps.words.count("[MASK]") == 1
    asked = anaphora.attention(folder, "[MASK] left because [MASK] was tired.", "[MASK]:2", ["[MASK]:1"])
    assert asked.example is not None and asked.example.pronoun == (20, 26)
    assert asked.row("[MASK]:2", 0, 0).positions == (asked.words.index("because") + 1,)


def test_hub_names_alone_are_looked_up_and_quickly_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_connection(*_: object, **__: object) -> None:
        raise AssertionError("a connection was tried")

    monkeypatch.setattr(socket, "create_connection", no_connection)
    monkeypatch.setattr(socket.socket, "connect", no_connection)
    with pytest.raises(UserError, match=r"model \(google-bert/bert\): there is no such folder; .* hf://owner/name"):
        anaphora.attention("google-bert/bert", TEXTS[0])
    waits: list[float] = []
    monkeypatch.setattr(time, "sleep", waits.append)
    with pytest.raises(UserError, match=r"model \(hf://google-bert/no-such\): cannot be opened: the hub cannot"):
        anaphora.attention("hf://google-bert/no-such", TEXTS[0])
    assert waits == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda folder: (folder / "config.json").unlink(), r"there is no config\.json"),
        (lambda folder: (folder / "model.safetensors").rename(folder / "pytorch_model.bin"), "is a pickle"),
        (lambda folder: (folder / "config.json").write_text("{"), r"config\.json, line 1: not JSON: .* at column 2"),
        (lambda folder: [path.unlink() for path in folder.glob("tokenizer*")], "its tokenizer is missing"),
        (
            lambda folder: (folder / "config.json").write_text(
                '{"model_type": "own", "auto_map": {"AutoModel": "o.M"}}'
            ),
            r"auto_map \(M\) is code of the model.s own",
        ),
    ],
)
def test_a_broken_folder_is_refused_in_one_line(change: Any, message: str, folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "model")
    change(tmp_path / "model")
    with pytest.raises(UserError, match=message) as caught:
        open_model(tmp_path / "model")
    assert "\n" not in str(caught.value)


def test_the_mask_in_a_text_is_the_models_own_whatever_its_name() -> None:
    own = tokenizer()
    backend = Tokenizer.from_str(own.backend_tokenizer.to_str().replace("[MASK]", "<mask>"))
    renamed = transformers.PreTrainedTokenizerFast(tokenizer_object=backend, mask_token="<mask>")
    assert renamed.mask_token_id == own.mask_token_id
    text = "[MASK] met Anna, and [MASK]小红 left."
    tokens, expected = (open_model(tiny("bert"), one).tokenize(text) for one in (renamed, own))
    assert tokens == expected and tokens.ids.count(own.mask_token_id) == 2
    assert "[MASK]" in [text[start:end] for start, end in tokens.spans]


def test_texts_and_tokenizers_that_do_not_fit_are_refused() -> None:
    opened = open_model(tiny("roberta"), tokenizer())
    assert opened._limits.tokens == 63  # positions are counted from the padding token's number on
    long = example_from_query("Anna left. " + "a " * 100, "Anna", [])
    with pytest.raises(UserError, match=r"text \('Anna left\. a a .*'\.\.\.\): it has 10\d tokens, but Roberta"):
        list(opened.records([example_from_query(TEXTS[0], "she", []), long]))
    with pytest.raises(UserError, match="text: it is empty"):
        opened.tokenize("  ")
    with pytest.raises(UserError, match="but the model knows 40 tokens; both must come from the same model"):
        open_model(tiny_language_model("bert", vocab_size=40), tokenizer()).tokenize(TEXTS[1])
    with pytest.raises(UserError, match=r"model \(Linear\) must be a folder, hf://owner/name, a run, or a model of"):
        open_model(torch.nn.Linear(2, 2), tokenizer())  # type: ignore[arg-type]
    with pytest.raises(UserError, match="a loaded model needs its tokenizer"):
        open_model(tiny("bert"))

    class Slow:
        is_fast = False

    with pytest.raises(UserError, match=r"its tokenizer \(Slow\) does not say which characters"):
        open_model(tiny("bert"), Slow())  # type: ignore[arg-type]


def test_a_model_without_attention_is_refused() -> None:
    mamba = transformers.AutoConfig.for_model(
        "mamba", hidden_size=32, num_hidden_layers=2, vocab_size=120, state_size=4
    )
    with pytest.raises(UserError, match="MambaModel: models of the family mamba have no layers of attention heads"):
        open_model(transformers.AutoModel.from_config(mamba), tokenizer())


def test_a_long_text_is_no_picture_but_a_page_and_windows(folder: Path) -> None:
    opened = open_model(tiny("bert"), tokenizer())
    maps = anaphora.attention(opened.model, "a b " * 30, tokenizer=tokenizer())
    assert maps.window("a", around=10).plot(0, 0)
    long = replace(maps, words=maps.words * 2, spans=maps.spans * 2)
    with pytest.raises(
        UserError, match=r"plot: 124 words do not fit in one picture, which takes 100; use window\(mention\)"
    ):
        long.plot(0, 0)


def test_special_tokens_can_be_left_out_and_long_texts_cut_to_a_window(folder: Path) -> None:
    maps = anaphora.attention(folder, TEXTS[1])
    kept = maps.without_special()
    assert kept.words == maps.words[1:-1]
    assert np.allclose(kept.weights.sum(axis=-1), 1, atol=1e-5)
    ratio = kept.weights[0, 0, 2] / maps.weights[0, 0, 3, 1:-1]
    assert np.allclose(ratio, ratio[0])
    part = maps.window("park", around=2)
    place = maps.words.index("park")
    assert part.words == maps.words[place - 2 : place + 3]
    assert np.array_equal(part.weights, maps.weights[..., place - 2 : place + 3, place - 2 : place + 3])


def test_saved_rows_are_those_of_all_words(folder: Path, tmp_path: Path) -> None:
    import pandas

    maps = anaphora.attention(folder, TEXTS[2], by="token")
    table = pandas.read_parquet(maps.save(tmp_path / "maps.parquet"))
    words = [place for place, (start, end) in enumerate(maps.spans) if start < end]
    assert table["item"].eq(0).all() and len(table) == len(words)
    third = table.iloc[2]
    assert (third["query_start"], third["query_end"]) == maps.spans[words[2]]
    shares = third["weights"].astype(np.float32).reshape(third["layers"], third["heads"], -1)
    weight = shares[1, 3] * third["scales"].reshape(shares.shape[:2])[1, 3]
    assert np.allclose(weight, maps.weights[1, 3, words[2]], rtol=1e-3)
    with pytest.raises(UserError, match=r"must end in \.parquet"):
        maps.save(tmp_path / "maps.csv")


def test_the_longest_text_is_measured_by_the_table_of_positions() -> None:
    """Some families count positions from the id of their padding token, others from an offset of their own."""
    for family in ("bert", "roberta", "mpnet", "camembert", "opt", "bart"):
        opened = open_model(tiny(family), tokenizer())
        longest = opened._limits.tokens
        assert longest == {"roberta": 63, "camembert": 63, "mpnet": 62}.get(family, 64)
        words = longest - len(opened.tokenize("a").ids)
        opened.maps("a" + " a" * words)
        with pytest.raises(
            UserError, match=rf"text \('a a .*'\.\.\.\): it has {longest + 1} tokens, but .* at most {longest}"
        ):
            opened.maps("a" + " a" * (words + 1))


def test_the_longest_text_of_a_model_of_texts_and_images_is_in_its_settings_for_texts() -> None:
    angles = {"rope_type": "default", "rope_theta": 10_000.0, "mrope_section": [1, 1, 2]}
    images = {"embed_dim": 16, "depth": 1, "num_heads": 2, "hidden_size": 32, "mlp_ratio": 2}
    config = transformers.Qwen2VLConfig(text_config={**GROUPED, "rope_parameters": angles}, vision_config=images)
    assert open_model(transformers.Qwen2VLModel(config).eval(), tokenizer())._limits.tokens == 64


def test_the_lower_of_the_limits_of_tokenizer_and_model_holds() -> None:
    own = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer().backend_tokenizer, model_max_length=8)
    assert open_model(tiny("bert"), own)._limits.tokens == 8
    own.model_max_length = 512
    assert open_model(tiny("mpnet"), own)._limits.tokens == 62
    own.model_max_length = 10**30
    assert open_model(tiny("t5"), own)._limits.tokens is None


def test_models_of_other_inputs_and_outputs_are_read_or_refused_in_one_line() -> None:
    """Cases are images, a vector for a whole text, an embedding that is not an nn.Embedding, and tuples as outputs."""
    of_texts = ("max_position_embeddings", "vocab_size", "bos_token_id", "eos_token_id")
    vision = {key: value for key, value in SIZE.items() if key not in of_texts}
    refused: dict[str, dict[str, Any]] = {
        "vit": {**vision, "image_size": 16, "patch_size": 8},
        "whisper": {
            "d_model": 32,
            "encoder_layers": 1,
            "decoder_layers": 1,
            "encoder_attention_heads": 4,
            "pad_token_id": 0,
            "decoder_attention_heads": 4,
            "vocab_size": 120,
        },
    }
    for family, settings in refused.items():
        config = transformers.AutoConfig.for_model(family, **settings)
        with pytest.raises(UserError) as caught:
            anaphora.attention(transformers.AutoModel.from_config(config), TEXTS[0], tokenizer=tokenizer())
        assert "\n" not in str(caught.value) and family in str(caught.value).lower()
    quantised = transformers.IBertModel(transformers.IBertConfig(**SIZE)).eval()
    of_vectors = transformers.DPRQuestionEncoder(transformers.DPRConfig(**SIZE)).eval()
    for model in (quantised, of_vectors):
        assert anaphora.attention(model, TEXTS[0], tokenizer=tokenizer()).weights.shape == (2, 4, 10, 10)
    model = tiny("bert")
    expected = anaphora.attention(model, TEXTS[0], tokenizer=tokenizer()).weights
    model.config.return_dict = False
    np.testing.assert_array_equal(anaphora.attention(model, TEXTS[0], tokenizer=tokenizer()).weights, expected)
    assert model.config.return_dict is False

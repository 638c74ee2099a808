from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from families import oracle
from families.registry import find_family
from families.shrink import tiny_config
from tiny import HYBRIDS, MIXED, SIZE, TEXTS, random_model, skip_if_unknown, tiny, tokenizer, transformers
from torch import Tensor

import anaphora
from anaphora.analysis.scores.heads import ranked_heads, score_records
from anaphora.analysis.tasks.antecedent_selection import CHOICE_SETS, collect_selections, heads_table
from anaphora.base.errors import UserError
from anaphora.data.own_sentence import example_from_query
from anaphora.hf.editing import maps_at_points
from anaphora.hf.reader import open_model
from anaphora.hf.verification.probe import ProbeText

FALCON = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 120, "pad_token_id": 0}
EXAMPLE = example_from_query(TEXTS[0], "she", ["Anna", "Emma"], "Anna")


def test_falcon_is_read_with_its_causal_mask() -> None:
    """Falcon rejects the switch to eager attention, and then returns maps computed with another mask."""
    model = random_model("falcon", **FALCON, initializer_range=0.3)
    opened = open_model(model, tokenizer())
    tokens, maps = opened.maps(TEXTS[0])
    assert opened.is_decoder and np.triu(maps, 1).max() == 0
    eager = transformers.AutoModel.from_config(copy.deepcopy(model.config), attn_implementation="eager").eval()
    eager.load_state_dict(model.state_dict())
    expected = eager(torch.tensor([tokens.ids]), output_attentions=True).attentions
    np.testing.assert_allclose(maps, torch.cat(expected).detach().numpy(), atol=1e-5)


def test_a_model_whose_eager_attention_computes_something_else_is_read_in_its_own() -> None:
    """Falcon's eager attention adds the ALiBi bias twice, and its fused attention once."""
    model = random_model("falcon", **FALCON, alibi=True, initializer_range=0.3)
    opened = open_model(model, tokenizer())
    tokens, maps = opened.maps(TEXTS[0])
    for shown, used in zip(maps, oracle.run(model, tokens.ids).squares, strict=True):
        np.testing.assert_allclose(shown, used.maps(len(tokens.ids))[0], atol=1e-5)


@pytest.mark.parametrize(
    ("family", "settings"),
    [("squeezebert", {**SIZE, "embedding_size": 32}), ("prophetnet", {"hidden_size": 32, "num_encoder_layers": 2,
      "num_decoder_layers": 2, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64, "num_encoder_attention_heads": 4,
      "num_decoder_attention_heads": 4, "vocab_size": 120, "max_position_embeddings": 64})],
)  # fmt: skip
def test_of_scores_that_are_given_as_weights_the_softmax_is_read(family: str, settings: dict[str, Any]) -> None:
    model = random_model(family, **settings)
    opened = open_model(model, tokenizer())
    tokens = [opened.tokenize(text) for text in TEXTS]
    part = model.get_encoder() if model.config.is_encoder_decoder else model
    together = opened.run(tokens)
    for row, own in enumerate(tokens):
        scores = part(torch.tensor([own.ids]), output_attentions=True).attentions
        length = len(own.ids)
        for shown, given in zip(together, scores, strict=True):
            expected = given.detach().view(4, length, length).softmax(dim=-1)
            torch.testing.assert_close(shown[row, :, :length, :length], expected, atol=1e-5, rtol=1e-4)


def test_a_band_of_weights_is_refused() -> None:
    model = random_model("longformer", **SIZE, attention_window=4)
    with pytest.raises(UserError, match=r"family longformer have no layers of attention heads whose weights can be"):
        anaphora.attention(model, TEXTS[0], tokenizer=tokenizer())


def test_products_without_any_rows_do_not_hide_why_a_model_is_refused() -> None:
    """LongT5 has no global token in a short text, and multiplies an empty matrix."""
    settings = {"d_model": 32, "num_layers": 2, "num_heads": 4, "d_ff": 64, "d_kv": 8, "vocab_size": 120}
    model = random_model("longt5", **settings, encoder_attention_type="transient-global")
    with pytest.raises(UserError, match=r"family longt5 have no layers of attention heads whose weights can be"):
        anaphora.attention(model, TEXTS[0], tokenizer=tokenizer())


def test_an_edit_of_maps_in_an_unknown_shape_is_refused_with_the_name_of_the_model() -> None:
    opened = open_model(random_model("bert", **SIZE), tokenizer())
    inputs = opened.padded([opened.tokenize(TEXTS[0])])
    with pytest.raises(UserError, match=r"^BertModel: a block attends in the shape \(.*\), unlike in a text that"):
        maps_at_points(opened.model, opened.editable.points, inputs, heads=3)


def test_a_model_that_a_text_changes_reads_each_text_from_the_same_state_and_is_left_as_it_was() -> None:
    """BigBird switches to full attention for short texts, and computes blocks, which are not maps, for long texts."""
    settings = {**SIZE, "max_position_embeddings": 1024, "block_size": 4, "num_random_blocks": 2}
    model = random_model("big_bird", **settings, attention_type="block_sparse", initializer_range=0.3)
    long = torch.arange(5, 85).repeat(10)[None, :768]
    before = model(long).last_hidden_state
    opened = open_model(model, tokenizer())
    tokens, maps = opened.maps(TEXTS[0])
    for shown, used in zip(maps, oracle.run(copy.deepcopy(model), tokens.ids).squares, strict=True):
        np.testing.assert_allclose(shown, used.maps(len(tokens.ids))[0], atol=1e-5)
    with pytest.raises(
        UserError, match=r"BigBirdModel: in a text of \d+ tokens, 0 of its 2 blocks attend to single tokens"
    ) as caught:
        opened.maps("Anna left. " * 250)
    assert "\n" not in str(caught.value)
    assert model.attention_type == "block_sparse" and torch.equal(model(long).last_hidden_state, before)


def test_weights_that_a_pass_overwrites_are_set_back() -> None:
    settings = {"vocab_size": 120, "hidden_size": 32, "attention_hidden_size": 32, "num_hidden_layers": 8}
    model = random_model("rwkv", **settings, context_length=64)
    before = {name: weight.clone() for name, weight in model.state_dict().items()}
    with pytest.raises(UserError, match=r"a text changes the model itself \(its weights\)"):
        anaphora.attention(model, TEXTS[0], tokenizer=tokenizer())
    assert all(torch.equal(weight, before[name]) for name, weight in model.state_dict().items())
    assert not model.layers_are_rescaled


LONG_ROPE = {"rope_type": "longrope", "rope_theta": 10000.0, "factor": 8.0, "original_max_position_embeddings": 40}


def test_texts_whose_longest_decides_the_angles_of_all_are_read_and_edited_one_by_one() -> None:
    """Phi-3 writes its rotary angles to a buffer in every pass, by the length of the longest text of the batch."""
    angles = {**LONG_ROPE, "short_factor": [1.0] * 4, "long_factor": [9.0] * 4}
    settings = {**MIXED, "max_position_embeddings": 320, "original_max_position_embeddings": 40}
    model = random_model("phi3", **settings, rope_parameters=angles, initializer_range=0.3)
    opened = open_model(model, tokenizer())
    tokens = [opened.tokenize(TEXTS[0]), opened.tokenize(" ".join([TEXTS[1]] * 3))]
    expected = [oracle.run(copy.deepcopy(model), own.ids) for own in tokens]
    assert len(tokens[0].ids) < 40 < len(tokens[1].ids)
    together, states = opened.run(tokens), [opened.editable.read([one], [])[1][0] for one in tokens]
    with pytest.raises(ValueError, match="one text at a time"):
        opened.editable.read(tokens, [])
    for row, alone in enumerate(expected):
        count = alone.tokens
        torch.testing.assert_close(states[row][:count], alone.states, atol=1e-4, rtol=0)
        for layer, used in zip(together, alone.squares, strict=True):
            torch.testing.assert_close(layer[row, :, :count, :count], used.maps(count)[0], atol=1e-5, rtol=0)


def test_angles_that_only_a_long_text_writes_are_known_from_their_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in transformers before 5.16: a short text, such as that of the check, leaves the buffer as it is."""
    monkeypatch.setattr(ProbeText, "_writes_weights", property(lambda _: False, lambda *_: None), raising=False)
    angles = {**LONG_ROPE, "short_factor": [1.0] * 4, "long_factor": [9.0] * 4}
    settings = {**MIXED, "max_position_embeddings": 320, "original_max_position_embeddings": 40}
    assert open_model(random_model("phi3", **settings, rope_parameters=angles), tokenizer()).reading.alone
    assert not open_model(random_model("phi3", **settings), tokenizer()).reading.alone


@pytest.mark.parametrize("causal", [False, True])
def test_causal_is_measured_whatever_the_number_of_the_padding_token(causal: bool) -> None:
    settings = {"emb_dim": 32, "n_layers": 2, "n_heads": 4, "vocab_size": 120, "pad_index": 4, "pad_token_id": 4}
    model = random_model("xlm", **settings, causal=causal, max_position_embeddings=64)
    maps = anaphora.attention(model, TEXTS[0], tokenizer=tokenizer())
    assert maps.is_decoder == causal == (np.triu(maps.weights, 1).max() == 0)


def test_texts_that_padding_changes_are_read_one_by_one() -> None:
    """The convolution in Nystromformer mixes values of padding into real tokens."""
    opened = open_model(random_model("nystromformer", **SIZE, initializer_range=0.5), tokenizer())
    tokens = [opened.tokenize(text) for text in TEXTS]
    together = opened.run(tokens)
    for row, own in enumerate(tokens):
        for layer, alone in zip(together, opened.run([own]), strict=True):
            length = len(own.ids)
            assert torch.equal(layer[row, :, :length, :length], alone[0]) and not layer[row, :, length:].any()
    examples = [EXAMPLE, example_from_query(TEXTS[1], "he", ["The old man", "park"])]
    for record, example in zip(opened.records(examples), examples, strict=True):
        np.testing.assert_array_equal(record.weights, next(opened.records([example])).weights)


def test_a_selection_of_tokens_that_begins_beyond_the_text_of_the_check_is_read() -> None:
    """DeepSeek V3.2 gives its attention function the tokens that a query may see: all of them in a short text."""
    skip_if_unknown("deepseek_v32")
    family = find_family("deepseek_v32")
    assert family is not None
    config = tiny_config(family)
    config.index_topk = 40
    torch.manual_seed(0)
    model = family.model_class._from_config(config).eval()
    opened = open_model(model, tokenizer())
    tokens, maps = opened.maps("Anna helped Emma because she was weak. " * 5)
    assert len(tokens.ids) > 40
    for shown, used in zip(maps, oracle.run(model, tokens.ids).squares, strict=True):
        np.testing.assert_allclose(shown, used.maps(len(tokens.ids))[0], atol=1e-5)


def test_a_selection_of_tokens_by_each_head_that_begins_beyond_the_text_of_the_check_is_read_in_batches() -> None:
    """Doge selects tokens for each head, and padding may take the place of some."""
    model = random_model("doge", **MIXED, keep_window_size=16, initializer_range=0.3)
    opened = open_model(model, tokenizer())
    tokens = [opened.tokenize(text) for text in (TEXTS[1], TEXTS[1] + TEXTS[0])]
    length = len(tokens[0].ids)
    assert 16 < length < len(tokens[1].ids)
    for layer, used in zip(opened.run(tokens), oracle.run(model, tokens[0].ids).squares, strict=True):
        torch.testing.assert_close(layer[0, :, :length, :length], used.maps(length)[0], atol=1e-5, rtol=0)


Change = Callable[[tuple[Tensor, ...]], Any]
FALSE_MAPS: dict[str, Change] = {
    "none": lambda _: None,
    "scores": lambda maps: tuple(one.log() for one in maps),
    "transposed": lambda maps: tuple(one.transpose(2, 3) for one in maps),
    "other order of layers": lambda maps: maps[::-1],
    "other order of heads": lambda maps: tuple(one.flip(1) for one in maps),
    "other order of tokens": lambda maps: tuple(one.flip(2, 3) for one in maps),
    "mean over heads": lambda maps: tuple(one.mean(1, keepdim=True) for one in maps),
    "without heads": lambda maps: tuple(one[:, 0] for one in maps),
    "a layer is missing": lambda maps: maps[1:],
    "a layer twice": lambda maps: (*maps, maps[0]),
    "sharpened": lambda maps: tuple((10 * one).softmax(-1) for one in maps),
    "even": lambda maps: tuple(torch.full_like(one, 1 / one.shape[-1]) for one in maps),
    "without the last token": lambda maps: tuple(one[..., :-1, :-1] for one in maps),
    "scaled": lambda maps: tuple(one / 2 for one in maps),
}


def lying(change: Change) -> Any:
    """Return a model whose forward pass returns other maps than it uses."""

    class Lying(transformers.MPNetModel):  # type: ignore[misc]
        change: Any = None

        def forward(self, input_ids: Any = None, attention_mask: Any = None, **options: Any) -> Any:
            outputs = super().forward(input_ids, attention_mask, **options)
            if outputs.attentions:
                outputs.attentions = type(self).change(outputs.attentions)
            return outputs

    Lying.change = staticmethod(change)
    torch.manual_seed(0)
    return Lying(transformers.MPNetConfig(**SIZE, attn_implementation="eager")).eval()


@pytest.mark.parametrize("name", FALSE_MAPS)
def test_in_place_of_maps_that_are_not_the_weights_in_use_these_are_read(name: str) -> None:
    expected = anaphora.attention(lying(lambda maps: maps), TEXTS[0], tokenizer=tokenizer()).weights
    shown = anaphora.attention(lying(FALSE_MAPS[name]), TEXTS[0], tokenizer=tokenizer()).weights
    np.testing.assert_allclose(shown, expected, atol=1e-5)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("scores", r"layer 0 head 0 has the weight -.*; expected finite numbers, 0 or more"),
        ("scaled", r"layer 0 head 0 sums to 0\.5; expected 1"),
        ("without the last token", r"the maps of a text of 11 tokens have the shapes \[\(1, 4, 10, 10\)\]"),
        ("a layer is missing", r"expected 2 of \(1, 4, 11, 11\)"),
        ("none", r"expected 2 of \(1, 4, 11, 11\)"),
    ],
)
def test_each_map_is_checked_when_it_enters(name: str, message: str) -> None:
    """This includes maps of texts for which a model behaves differently than in the probe."""
    model = lying(lambda maps: maps)
    opened = open_model(model, tokenizer())
    type(model).change = staticmethod(FALSE_MAPS[name])
    for read in (lambda: opened.maps(TEXTS[0]), lambda: list(opened.records([EXAMPLE]))):
        with pytest.raises(UserError, match=message):
            read()


def test_weight_on_later_words_is_refused_in_a_causal_model() -> None:
    opened = open_model(tiny("bloom"), tokenizer())
    opened.model.config.is_causal = False  # the library builds its masks after this
    with pytest.raises(UserError, match=r"BloomModel \(bloom\): a row of layer 0 head 0 gives .* to tokens that it"):
        opened.maps(TEXTS[0])


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("family", ["bert", "mpnet", "llama", "bart"])
def test_half_precision_is_read(family: str, dtype: torch.dtype) -> None:
    model = tiny(family).to(dtype)
    maps = anaphora.attention(model, TEXTS[0], tokenizer=tokenizer())
    np.testing.assert_allclose(maps.weights.sum(axis=-1), 1, atol=0.02)
    (record,) = open_model(model, tokenizer()).records([EXAMPLE])
    assert record.weights.shape == (2, 4, 11)


@pytest.mark.parametrize(
    ("family", "layers", "dtype"),
    [("bert", 12, torch.float16), ("bert", 12, torch.bfloat16), ("llama", 12, torch.bfloat16)],
)
def test_deep_models_in_half_precision_are_edited(family: str, layers: int, dtype: torch.dtype) -> None:
    """From layer to layer, differences in rounding grow beyond the effect of an edge of small weight."""
    settings = {**(SIZE if family == "bert" else MIXED), "num_hidden_layers": layers, "initializer_range": 0.1}
    model = random_model(family, **settings).to(dtype)
    assert len(open_model(model, tokenizer()).editable.points) == layers


def test_an_attention_that_cannot_be_observed_is_compared_with_one_that_can() -> None:
    def hidden_kernel(*arguments: Any, **options: Any) -> Any:
        with torch._C._DisableTorchDispatch():
            return transformers.integrations.sdpa_attention.sdpa_attention_forward(*arguments, **options)

    transformers.AttentionInterface.register("hidden", hidden_kernel)
    transformers.AttentionMaskInterface.register("hidden", transformers.masking_utils.sdpa_mask)
    expected = anaphora.attention(tiny("bert"), TEXTS[0], tokenizer=tokenizer()).weights
    model = tiny("bert", "hidden")
    np.testing.assert_array_equal(anaphora.attention(model, TEXTS[0], tokenizer=tokenizer()).weights, expected)
    assert model.config._attn_implementation == "hidden"


@pytest.mark.parametrize("family", ["bert", "mpnet", "bart", "gpt2", "bloom"])
def test_a_model_is_left_as_it_was_also_after_an_error(family: str) -> None:
    model = tiny(family)
    model.train()
    model.get_input_embeddings().eval()
    before = described(model)
    opened = open_model(model, tokenizer())
    opened.maps(TEXTS[0])
    assert described(model) == before

    def fail(*_: Any) -> None:
        raise ValueError("no\nmore")

    # The first part fails: the last may follow the last map, where a pass ends.
    handle = opened.model.get_input_embeddings().register_forward_pre_hook(fail)
    with pytest.raises(UserError, match="cannot read the text: no") as caught:
        opened.maps(TEXTS[0])
    assert "\n" not in str(caught.value)
    handle.remove()
    assert described(model) == before


def described(model: Any) -> list[Any]:
    """Return all attributes of all modules and configurations, and the numbers of hooks."""
    described: list[Any] = []
    for part in model.modules():
        values = {name: value for name, value in vars(part).items() if not name.startswith("_")}
        described.append((type(part), values.keys(), part.training, list(part._modules), len(part._forward_hooks)))
        if hasattr(part, "config"):
            described.append((part.config.to_dict(), part.config._attn_implementation, part.config.return_dict))
    return described


def test_a_model_that_gives_tuples_is_read() -> None:
    model = tiny("mpnet")
    model.config.return_dict = False
    maps = anaphora.attention(model, TEXTS[0], tokenizer=tokenizer())
    assert maps.weights.shape == (2, 4, 10, 10) and model.config.return_dict is False


@pytest.mark.parametrize(("family", "settings"), HYBRIDS)
def test_layers_that_attend_keep_the_models_numbers(family: str, settings: dict[str, Any], tmp_path: Path) -> None:
    model = random_model(family, **settings)
    maps = anaphora.attention(model, TEXTS[0], "she", ["Anna", "Emma"], tokenizer=tokenizer())
    assert {one.layer for one in maps.rank("she", "Anna")} == {1, 3} and maps.weights.shape[0] == 4
    np.testing.assert_allclose(maps.map(3, 0).sum(axis=-1), 1, atol=1e-5)
    with pytest.raises(UserError, match=r"layer \(0\) has no attention; layers with attention: 1, 3"):
        maps.row("she", 0, 0)
    assert set(maps.frame()["layer"]) == {1, 3}
    assert '"blank_layers":[0,2]' in maps.page(tmp_path / "page.html").path.read_text(encoding="utf-8")
    assert maps.save(tmp_path / "maps.parquet").exists()
    opened = open_model(model, tokenizer())
    scores = score_records(opened.records([EXAMPLE]))
    assert {head.layer for head in ranked_heads(scores)} == {1, 3}
    selections = collect_selections([EXAMPLE], enumerate(opened.records([EXAMPLE])))
    assert {selections.best(field, "all").layer for field in CHOICE_SETS} <= {1, 3}
    assert {row.layer for row in heads_table(selections, "test")} == {1, 3}


def test_a_model_none_of_whose_layers_attend_is_refused_in_one_line() -> None:
    model = random_model("lfm2", **{**MIXED, "layer_types": ["conv"] * 4})
    with pytest.raises(UserError, match=r"^Lfm2Model: .*") as caught:
        anaphora.attention(model, TEXTS[0], tokenizer=tokenizer())
    assert "\n" not in str(caught.value)


class OneVector(transformers.BertModel):  # type: ignore[misc]
    """Model that returns a vector for a whole text."""

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None, **options: Any) -> Any:
        return (super().forward(input_ids, attention_mask, **options)[0].mean(dim=1),)


def test_a_model_without_hidden_states_is_refused_when_it_is_opened() -> None:
    with pytest.raises(UserError, match="family bert cannot be read: OneVector gives no states for the tokens"):
        open_model(OneVector(transformers.BertConfig(**SIZE)).eval(), tokenizer())
    with pytest.raises(UserError, match="family dpr cannot be read: DPRSpanPredictor"):
        open_model(transformers.DPRReader(transformers.DPRConfig(**SIZE)).eval(), tokenizer())


def test_a_sink_has_a_column_of_its_own() -> None:
    settings = {**MIXED, "num_local_experts": 4, "num_experts_per_tok": 2, "initializer_range": 0.3}
    model = random_model("gpt_oss", **settings)
    opened = open_model(model, tokenizer())
    own = opened.tokenize(TEXTS[0])
    maps = anaphora.attention(model, TEXTS[0], by="token", tokenizer=tokenizer())
    assert maps.words[0] == "[sink]" and maps.spans[0] == (0, 0) and len(maps.words) == len(own.ids) + 1
    np.testing.assert_allclose(maps.weights.sum(axis=-1), 1, atol=1e-5)
    expected = model(torch.tensor([own.ids]), output_attentions=True).attentions
    np.testing.assert_allclose(maps.weights[:, :, 1:, 1:], torch.cat(expected).detach().numpy(), atol=1e-5)
    assert maps.weights[:, :, 1:, 0].mean() > 0.05 and np.triu(maps.weights, 1).max() == 0
    (record,) = opened.records([EXAMPLE])
    (position,) = (place for place, (start, end) in enumerate(maps.spans) if TEXTS[0][start:end] == "she")
    np.testing.assert_allclose(record.weights, maps.weights[:, :, position], atol=1e-5)
    assert record.special[0] == "[sink]" and record.words[0] == -1

"""Tests of models that consist of several models, or are loaded as a class of another family."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from families import oracle
from tiny import GPT2, GROUPED, SIZE, TEXTS, random_model, skip_if_unknown, tokenizer, transformers

import anaphora
from anaphora.base.errors import UserError
from anaphora.hf.editable import why_no_answer
from anaphora.hf.reader import TransformersModel, open_model

QUESTION = (TEXTS[0], "she", ["Anna", "Emma"])
VISION: dict[str, Any] = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
VISION |= {"image_size": 16, "patch_size": 8}
MOE: dict[str, Any] = {"d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_ffn_dim": 64}
MOE |= {"decoder_ffn_dim": 64, "encoder_attention_heads": 4, "decoder_attention_heads": 4, "vocab_size": 120}
MOE |= {"max_position_embeddings": 64, "num_experts": 4, "encoder_sparse_step": 1, "init_std": 0.5}


def wide(model: Any) -> Any:
    """Return a model in evaluation mode with weights large enough to distinguish its heads."""
    torch.manual_seed(0)
    with torch.no_grad():
        for weight in model.parameters():
            if weight.dim() > 1:
                weight.normal_(std=0.5)
    return model.eval()


def reopened(model: Any, path: Path) -> TransformersModel:
    model.save_pretrained(path)
    tokenizer().save_pretrained(path)
    return open_model(path)


def llava() -> Any:
    config = transformers.LlavaConfig(
        text_config=transformers.LlamaConfig(**GROUPED),
        vision_config=transformers.CLIPVisionConfig(**VISION),
        image_token_index=110,
    )
    return wide(transformers.LlavaForConditionalGeneration(config))


def test_a_language_model_of_texts_and_images_is_read_with_its_output_layer_and_answers(tmp_path: Path) -> None:
    model = llava()
    opened = reopened(model, tmp_path / "llava")
    own, maps = opened.maps(TEXTS[0])
    for shown, used in zip(maps, oracle.run(model.base_model, own.ids).squares, strict=True):
        np.testing.assert_allclose(shown, used.maps(len(own.ids))[0], atol=1e-5)
    (answer,) = anaphora.answers(str(tmp_path / "llava"), [(TEXTS[0], "she", ["Anna", "Emma"])])
    prompt = f'{TEXTS[0]} The word "she" refers to'
    start = len(tokenizer()(prompt)["input_ids"]) - 1
    scores = []
    for candidate in ("Anna", "Emma"):
        ids = tokenizer()(f"{prompt} {candidate}")["input_ids"][:-1]
        logits = model(input_ids=torch.tensor([ids])).logits[0].log_softmax(-1)
        scores.append(torch.stack([logits[place - 1, ids[place]] for place in range(start, len(ids))]).mean())
    expected = torch.stack(scores).softmax(0).tolist()
    assert [one.probability for one in answer.candidates] == pytest.approx(expected, abs=1e-5)


def test_a_key_of_the_text_model_that_changes_attention_and_is_ignored_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "llava"
    reopened(llava(), path)
    config = json.loads((path / "config.json").read_text())
    config["vision_config"]["alibi"] = True  # of the part that is not read
    (path / "config.json").write_text(json.dumps(config))
    open_model(path)
    config["text_config"]["alibi"] = True
    (path / "config.json").write_text(json.dumps(config))
    with pytest.raises(
        UserError, match=r"config\.json: text_config: alibi \(True\): .* ignores .* of the family llama,"
    ):
        open_model(path)


def test_a_family_whose_only_model_has_an_output_layer_is_read_and_answers() -> None:
    config = transformers.Llama4Config(
        text_config={**GROUPED, "head_dim": 8, "num_local_experts": 2, "intermediate_size_mlp": 64},
        vision_config={**VISION, "vision_output_dim": 32, "projector_input_dim": 32, "projector_output_dim": 32},
    )
    model = wide(transformers.Llama4ForConditionalGeneration(config))
    opened = open_model(model, tokenizer())
    own, maps = opened.maps(TEXTS[0])
    for shown, used in zip(maps, oracle.run(model, own.ids).squares, strict=True):
        np.testing.assert_allclose(shown, used.maps(len(own.ids))[0], atol=1e-5)
    (answer,) = anaphora.answers(model, [(TEXTS[0], "she", ["Anna", "Emma"])], tokenizer=tokenizer())
    assert sum(one.probability for one in answer.candidates) == pytest.approx(1)


def test_of_a_dual_encoder_the_text_encoder_is_read(tmp_path: Path) -> None:
    config = transformers.CLIPConfig(text_config={**SIZE, "projection_dim": 16}, vision_config=VISION)
    opened = reopened(wide(transformers.CLIPModel(config)), tmp_path / "clip")
    text_model = transformers.CLIPTextModel.from_pretrained(tmp_path / "clip")
    np.testing.assert_array_equal(opened.maps(TEXTS[0])[1], open_model(text_model, tokenizer()).maps(TEXTS[0])[1])
    assert opened.is_decoder and opened.untrained(0).maps(TEXTS[0])[1].shape == opened.maps(TEXTS[0])[1].shape


def test_the_encoder_of_two_models_joined_is_read_from_a_folder(tmp_path: Path) -> None:
    bert = transformers.BertConfig(**SIZE)
    config = transformers.EncoderDecoderConfig.from_encoder_decoder_configs(bert, copy.deepcopy(bert))
    config.decoder_start_token_id = config.pad_token_id = 0
    model = wide(transformers.EncoderDecoderModel(config=config))
    expected = open_model(model.encoder, tokenizer()).maps(TEXTS[0])[1]
    np.testing.assert_array_equal(reopened(model, tmp_path / "pair").maps(TEXTS[0])[1], expected)


class Wrapped(transformers.PreTrainedModel):  # type: ignore[misc]
    """Model of a class outside `transformers`, which gives its encoder the text, possibly changed."""

    config_class, base_model_prefix = transformers.BertConfig, "encoder"

    def __init__(self, factor: float) -> None:
        super().__init__(transformers.BertConfig(**SIZE, initializer_range=0.3))
        self.encoder, self.factor = random_model("bert", **SIZE, initializer_range=0.3), factor

    def forward(self, input_ids: Any, attention_mask: Any = None, **options: Any) -> Any:
        embedded = self.encoder.embeddings.word_embeddings(input_ids)
        return self.encoder(inputs_embeds=embedded * self.factor, attention_mask=attention_mask, **options)


def test_a_model_that_changes_the_text_before_its_encoder_is_refused() -> None:
    model = Wrapped(2.0)
    with pytest.raises(
        UserError, match=r"Wrapped: it does not run its BertModel on the text as it is.*model\.encoder$"
    ):
        open_model(model, tokenizer())
    alone = open_model(model.encoder, tokenizer()).maps(TEXTS[0])[1]
    np.testing.assert_array_equal(open_model(Wrapped(1.0), tokenizer()).maps(TEXTS[0])[1], alone)


def test_a_hook_outside_the_encoder_that_changes_the_text_is_refused() -> None:
    model = transformers.BertForMaskedLM(transformers.BertConfig(**SIZE, initializer_range=0.3)).eval()
    expected = open_model(model, tokenizer()).maps(TEXTS[0])[1]
    counted: list[Any] = []
    model.register_forward_hook(lambda *call: counted.append(call))
    np.testing.assert_array_equal(open_model(model, tokenizer()).maps(TEXTS[0])[1], expected)
    model.register_forward_pre_hook(
        lambda _, given, named: (given, {**named, "input_ids": named["input_ids"].flip(1)}), with_kwargs=True
    )
    with pytest.raises(UserError, match=r"does not run its BertModel on the text as it is.*model\.bert$"):
        open_model(model, tokenizer())
    assert len(model._forward_pre_hooks) == 1 and not model.bert._forward_hooks


@pytest.mark.parametrize(("family", "settings"), [("gpt-sw3", GPT2), ("internlm3", GROUPED)])
def test_a_family_that_is_loaded_as_a_class_of_another_is_no_mismatch(
    family: str, settings: dict[str, Any], tmp_path: Path
) -> None:
    skip_if_unknown(family)
    config = transformers.AutoConfig.for_model(family, **settings)
    config.model_type = family
    model = wide(transformers.AutoModelForCausalLM.from_config(config))
    opened = reopened(model, tmp_path / family)
    assert opened.language_model is not None
    np.testing.assert_array_equal(opened.maps(TEXTS[0])[1], open_model(model, tokenizer()).maps(TEXTS[0])[1])


def test_a_model_with_two_output_layers_answers_with_the_one_over_the_vocabulary(tmp_path: Path) -> None:
    """It answers so whether it is loaded or read from a folder, where the other output layer is ignored."""
    bert = wide(transformers.BertForPreTraining(transformers.BertConfig(**SIZE)))
    gpt2 = wide(transformers.GPT2DoubleHeadsModel(transformers.GPT2Config(**GPT2)))
    for model, text in ((bert, "Anna helped Emma because [MASK] was weak."), (gpt2, TEXTS[0])):
        expected = None
        for opened in (open_model(model, tokenizer()), reopened(model, tmp_path / type(model).__name__)):
            tokens = opened.tokenize(text)
            output = model(input_ids=torch.tensor([tokens.ids]))
            (logits,) = opened.logits([tokens], {})
            own = output.prediction_logits if model is bert else output.logits
            torch.testing.assert_close(logits, own[0], atol=1e-4, rtol=1e-4)
            assert opened.language_model is not None
            (answer,) = anaphora.answers(opened.language_model, [QUESTION], tokenizer=tokenizer())
            expected = expected or answer
            assert answer == expected


@pytest.mark.parametrize("name", ["ElectraForPreTraining", "BertForNextSentencePrediction"])
def test_an_output_layer_over_something_else_than_the_vocabulary_gives_no_answers(name: str, tmp_path: Path) -> None:
    kind = getattr(transformers, name)
    model = wide(kind(kind.config_class(**SIZE)))
    for opened in (open_model(model, tokenizer()), reopened(model, tmp_path / "model")):
        assert str(why_no_answer(opened)).endswith("so it gives no answers")


def test_an_output_layer_that_the_file_lacks_may_hold_anything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """transformers 5.2 leaves it as the memory is, so that it may not be finite."""
    model = wide(transformers.ElectraForPreTraining(transformers.ElectraConfig(**SIZE)))
    expected = open_model(model, tokenizer()).maps(TEXTS[0])[1]
    of_file = transformers.ElectraForMaskedLM.from_pretrained

    def unfinished(*arguments: Any, **options: Any) -> Any:
        loaded, report = of_file(*arguments, **options)
        loaded.generator_lm_head.bias.data.fill_(torch.nan)
        return loaded, report

    monkeypatch.setattr(transformers.ElectraForMaskedLM, "from_pretrained", unfinished)
    np.testing.assert_array_equal(reopened(model, tmp_path / "model").maps(TEXTS[0])[1], expected)


def test_an_encoder_whose_weights_have_another_prefix_than_its_familys_is_read_from_a_folder(tmp_path: Path) -> None:
    model = wide(transformers.DPRContextEncoder(transformers.DPRConfig(**SIZE)))
    expected = open_model(model, tokenizer()).maps(TEXTS[0])[1]
    np.testing.assert_array_equal(reopened(model, tmp_path / "dpr").maps(TEXTS[0])[1], expected)


def test_a_text_encoder_that_no_auto_class_loads_is_read_from_a_folder(tmp_path: Path) -> None:
    model = wide(transformers.SiglipTextModel(transformers.SiglipTextConfig(**SIZE)))
    expected = open_model(model, tokenizer()).maps(TEXTS[0])[1]
    np.testing.assert_array_equal(reopened(model, tmp_path / "siglip").maps(TEXTS[0])[1], expected)


def test_a_decoder_in_a_wrapper_with_its_embeddings_is_read() -> None:
    config = transformers.ProphetNetConfig(
        hidden_size=32,
        num_decoder_layers=2,
        decoder_ffn_dim=64,
        num_decoder_attention_heads=4,
        vocab_size=120,
        max_position_embeddings=64,
        pad_token_id=0,
        num_encoder_attention_heads=4,
    )
    model = wide(transformers.ProphetNetForCausalLM(config))
    opened = open_model(model, tokenizer())
    own, maps = opened.maps(TEXTS[0])
    for shown, used in zip(maps, oracle.run(model.base_model, own.ids).squares, strict=True):
        np.testing.assert_allclose(shown, used.maps(len(own.ids))[0], atol=1e-5)


def test_texts_that_compete_for_experts_are_read_one_by_one() -> None:
    """An expert of NLLB-MoE takes a number of tokens of the whole batch, and drops the others."""
    model = random_model("nllb-moe", **MOE, expert_capacity=64, moe_eval_capacity_token_fraction=-1.0)
    opened = open_model(model, tokenizer())
    tokens = [opened.tokenize(text) for text in TEXTS * 10]
    together, states = opened.run(tokens), [opened.editable.read([one], [])[1][0] for one in tokens]
    for row in range(len(TEXTS)):
        count = len(tokens[row].ids)
        alone = oracle.run(copy.deepcopy(model.get_encoder()), tokens[row].ids)
        torch.testing.assert_close(states[row][:count], alone.states, atol=1e-4, rtol=0)
        for layer, used in zip(together, alone.squares, strict=True):
            torch.testing.assert_close(layer[row, :, :count, :count], used.maps(count)[0], atol=1e-5, rtol=0)

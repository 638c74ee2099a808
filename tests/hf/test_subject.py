from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from tiny import VERSION, tiny, tiny_language_model, tokenizer, transformers
from tokenizers import Tokenizer, models

from anaphora.analysis.causal.candidate_scoring import answerable_questions
from anaphora.analysis.causal.language_models import LanguageModelSubject
from anaphora.analysis.causal.subjects import ABLATION_MODES, Edges, PlacedText
from anaphora.analysis.results.scores import Head
from anaphora.base.errors import UserError
from anaphora.data.example import Example
from anaphora.data.own_sentence import example_from_query
from anaphora.hf.editable import TransformersLanguageModel, why_no_answer
from anaphora.hf.reader import TransformersModel, open_model

FAMILIES = ("bert", "bloom", "distilbert", "gpt2", "llama", "modernbert", "mpnet", "roberta")
EXAMPLES = [
    example_from_query("Anna helped Emma because she was weak.", "she", ["Anna", "Emma"], "Anna"),
    example_from_query("The old man left the park because he was tired.", "he", ["The old man", "park"], "The old man"),
    example_from_query("小红推了小明，因为他很生气。", "他", ["小红", "小明"], "小明"),
]
NOTHING = Edges(*np.zeros((5, 0), dtype=np.int64))


def of_transformers(model: TransformersModel, examples: Sequence[Example]) -> LanguageModelSubject:
    return LanguageModelSubject(TransformersLanguageModel(model), examples)


@pytest.fixture(params=FAMILIES)
def subject(request: pytest.FixtureRequest) -> LanguageModelSubject:
    return of_transformers(open_model(tiny_language_model(request.param), tokenizer()), EXAMPLES)


def edge(item: int, head: Head, query: int, key: int) -> Edges:
    return Edges(*(np.array([number]) for number in (item, head.layer, head.head, query, key)))


def all_heads(subject: LanguageModelSubject) -> list[Head]:
    layers, heads = subject.shape
    return [Head(layer, head) for layer in range(layers) for head in range(heads)]


def test_an_edit_of_nothing_changes_nothing(subject: LanguageModelSubject) -> None:
    """Replacing a row by itself is such an edit; the first item has as many masks as pronoun tokens."""
    plain = subject.scores()
    assert np.isfinite(plain[:, :2]).all() and (plain[:, :2] < 0).all() and np.isneginf(plain[:, 2]).all()
    pronoun = subject.tokens[0].covering(subject.examples[0].pronoun)
    own_rows = {0: dict(subject.maps())[0][:, :, pronoun]}
    for edited in (
        subject.knocked_out(NOTHING),
        subject.value_zeroed(NOTHING),
        subject.ablated([], "zero"),
        subject.patched(all_heads(subject), {}),
        subject.patched(all_heads(subject), own_rows),
    ):
        np.testing.assert_allclose(edited, plain, atol=1e-6)


def test_a_cut_edge_has_no_weight_and_the_rest_of_its_row_takes_it(subject: LanguageModelSubject) -> None:
    """A knockout equals patching in a row with 0 there, rescaled to 1; value-zeroing equals it without rescaling."""
    head, (pronoun,) = Head(0, 1), subject.tokens[0].covering(subject.examples[0].pronoun)
    row = dict(subject.maps())[0][:, :, [pronoun]].copy()
    without, scaled = row.copy(), row.copy()
    without[..., 1] = 0
    scaled[..., 1] = 0
    scaled /= scaled.sum(axis=-1, keepdims=True)
    cut = subject.knocked_out(edge(0, head, pronoun, 1))
    assert abs(cut[0, :2] - subject.scores()[0, :2]).max() > 1e-6
    np.testing.assert_allclose(cut[1:], subject.scores()[1:], atol=1e-6)
    np.testing.assert_allclose(cut, subject.patched([head], {0: scaled}), atol=1e-6)
    zeroed = subject.value_zeroed(edge(0, head, pronoun, 1))
    np.testing.assert_allclose(zeroed, subject.patched([head], {0: without}), atol=1e-6)


def test_each_item_is_answered_as_if_it_stood_alone(subject: LanguageModelSubject) -> None:
    heads = all_heads(subject)[:2]
    for item, example in enumerate(subject.examples):
        alone = LanguageModelSubject(subject._model, [example])
        np.testing.assert_allclose(alone.scores()[0], subject.scores()[item], atol=1e-5)
        np.testing.assert_allclose(alone.ablated(heads, "zero")[0], subject.ablated(heads, "zero")[item], atol=1e-5)


@pytest.mark.parametrize("mode", ABLATION_MODES)
def test_an_ablated_head_changes_the_answers_and_not_the_model(mode: str) -> None:
    subject = of_transformers(open_model(tiny_language_model("bert", initializer_range=0.5), tokenizer()), EXAMPLES)
    plain = subject.scores()
    assert abs(subject.ablated([Head(0, 0)], mode)[:, :2] - plain[:, :2]).max() > 1e-3
    np.testing.assert_array_equal(subject.scores(), plain)
    with pytest.raises(UserError, match=r"mode \('none'\) must be one of zero, mean, resample, uniform"):
        subject.ablated([Head(0, 0)], "none")


def test_a_dropped_value_is_what_a_bert_of_one_layer_computes_by_hand() -> None:
    model = tiny_language_model("bert", num_hidden_layers=1, initializer_range=0.5)
    subject = of_transformers(open_model(model, tokenizer()), EXAMPLES[:1])
    (example,), (tokens,) = subject.examples, subject.tokens
    (pronoun,), head, size = tokens.covering(example.pronoun), 2, 8
    ids = torch.tensor([tokens.ids])
    assert ids[0, pronoun] == tokenizer().mask_token_id
    layer = model.bert.encoder.layer[0]
    with torch.inference_mode():
        hidden = model.bert.embeddings(input_ids=ids)
        query, key, value = (
            getattr(layer.attention.self, name)(hidden)[0].view(-1, 4, size).transpose(0, 1)
            for name in ("query", "key", "value")
        )
        weights = (query @ key.transpose(1, 2) / size**0.5).softmax(dim=-1)
        heaviest = int(weights[head, pronoun].argmax())
        weights[head, pronoun, heaviest] = 0
        mixed = (weights @ value).transpose(0, 1).reshape(1, -1, 32)
        attended = layer.attention.output(mixed, hidden)
        words = model.cls(layer.output(layer.intermediate(attended), attended))[0, pronoun].double().log_softmax(dim=-1)
    expected = [
        float(words[[tokens.ids[token] for token in tokens.covering(spans[0])]].mean()) for spans in example.candidates
    ]
    zeroed = subject.value_zeroed(edge(0, Head(0, head), pronoun, heaviest))
    assert abs(zeroed[0, :2] - subject.scores()[0, :2]).max() > 1e-3
    np.testing.assert_allclose(zeroed[0, :2], expected, atol=1e-5)


def test_a_mask_stands_for_every_token_of_a_candidate() -> None:
    model = open_model(tiny_language_model("bert"), tokenizer())
    (item,) = answerable_questions(TransformersLanguageModel(model), EXAMPLES[1:2])
    masks = [text.tokens.ids.count(tokenizer().mask_token_id) for text in item.texts]
    words = [model.tokenize(words) for words in ("the old man", "park")]
    assert masks == [len(own.ids) - 2 for own in words]
    assert [text.targets[0].ids for text in item.texts] == [own.ids[1:-1] for own in words]  # no capital
    for text, count in zip(item.texts, masks, strict=True):
        (pronoun,) = item.tokens.covering(item.example.pronoun)
        assert len(text.alignment[pronoun]) == count
        assert text.tokens.ids[text.alignment[-1][0]] == item.tokens.ids[-1]
        np.testing.assert_allclose(PlacedText(0, 0, 0, len(text.tokens.ids), text.alignment).shares().sum(axis=1), 1)


def test_a_decoder_completes_a_prompt_with_the_candidate() -> None:
    model = open_model(tiny_language_model("gpt2"), tokenizer())
    (item,) = answerable_questions(TransformersLanguageModel(model), EXAMPLES[:1])
    assert item.tokens.spans[-1] == (37, 38)  # nothing behind the sentence
    for text, name in zip(item.texts, ("Anna", "Emma"), strict=True):
        assert text.tokens.ids == model.tokenize(f'{item.example.text} The word "she" refers to {name}').ids
        (target,) = text.targets
        logits = model.language_model(torch.tensor([text.tokens.ids])).logits[0]  # type: ignore[misc]
        expected = logits.log_softmax(dim=-1)[list(target.positions), list(target.ids)].mean()
        subject = of_transformers(model, EXAMPLES[:1])
        assert subject.scores()[0, target.candidate] == pytest.approx(expected.item(), abs=1e-5)


def test_a_candidate_whose_first_token_ends_the_prompt_is_no_answer() -> None:
    letters = {letter: number for number, letter in enumerate(sorted({*EXAMPLES[2].text, *"这里的“他”指的是"}))}
    for merges, answered in (([], 1), ([("是", "小")], 0)):
        vocabulary = letters | {"".join(pair): len(letters) for pair in merges}
        backend = Tokenizer(models.BPE(vocab=vocabulary, merges=merges))
        model = open_model(tiny_language_model("gpt2"), transformers.PreTrainedTokenizerFast(tokenizer_object=backend))
        assert len(answerable_questions(TransformersLanguageModel(model), EXAMPLES[2:])) == answered


def test_with_its_causal_mask_a_decoder_gives_later_words_no_weight() -> None:
    subject = of_transformers(open_model(tiny_language_model("llama"), tokenizer()), EXAMPLES[:1])
    (pronoun,) = subject.tokens[0].covering(subject.examples[0].pronoun)
    rows = dict(subject.maps())[0][:, :, [pronoun]].copy()
    assert (rows[..., pronoun + 1 :] == 0).all()
    later = rows / np.float32(2)
    later[..., pronoun + 1] = 0.5  # scaled up again, it is the row itself
    heads = all_heads(subject)
    np.testing.assert_allclose(subject.patched(heads, {0: later}), subject.scores(), atol=1e-5)


def test_masking_the_pronoun_leaves_out_items_whose_cue_it_is() -> None:
    pair = [
        replace(example_from_query(f"Anna met Tom before {word} left.", word, ["Anna", "Tom"], name), minimal_pair="1")
        for word, name in (("she", "Anna"), ("he", "Tom"))
    ]
    assert (
        answerable_questions(TransformersLanguageModel(open_model(tiny_language_model("bert"), tokenizer())), pair)
        == []
    )
    assert (
        len(answerable_questions(TransformersLanguageModel(open_model(tiny_language_model("gpt2"), tokenizer())), pair))
        == 2
    )
    with pytest.raises(UserError, match="BertForMaskedLM: it can answer none of 2 items"):
        of_transformers(open_model(tiny_language_model("bert"), tokenizer()), pair)


def test_an_output_layer_is_read_from_a_folder_where_it_was_trained(tmp_path: Path) -> None:
    whole = tiny_language_model("bert")
    whole.save_pretrained(tmp_path / "whole")
    whole.bert.save_pretrained(tmp_path / "without")
    whole.bert.config.architectures = ["BertForMaskedLM"]  # said, and not stored
    whole.bert.save_pretrained(tmp_path / "said")
    (tmp_path / "said" / "config.json").write_text(
        (tmp_path / "said" / "config.json").read_text().replace("BertModel", "BertForMaskedLM")
    )
    for name in ("whole", "without", "said"):
        tokenizer().save_pretrained(tmp_path / name)
    subject = of_transformers(open_model(tmp_path / "whole"), EXAMPLES)
    expected = of_transformers(open_model(whole, tokenizer()), EXAMPLES).scores()
    np.testing.assert_allclose(subject.scores(), expected, atol=1e-6)
    for name in ("without", "said"):
        reason = why_no_answer(open_model(tmp_path / name))
        assert str(reason).startswith(f"{name}: it has no output layer over the vocabulary that could be read, so")


def test_what_cannot_be_asked_says_why() -> None:
    with pytest.raises(UserError, match="BertModel: it has no output layer over the vocabulary"):
        of_transformers(open_model(tiny("bert"), tokenizer()), EXAMPLES)
    if VERSION < (5, 16):
        pytest.skip("before 5.16, the weights of diffllama enter one product")
    reason = str(why_no_answer(open_model(tiny_language_model("diffllama"), tokenizer())))
    assert reason.endswith(
        "of the family diffllama can be read but not edited: the weights of block 0 enter two products"
    )

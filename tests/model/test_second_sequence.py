"""Tests of attention from a second sequence, whose tokens are only queries; keys and values are in the first."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from encoders import ATTENTIONS, NORMS, POSITIONS, RECURRENT, encoder, pack, sentence, shape
from torch import Tensor

from anaphora.analysis.maps.capture import text_maps, whole_maps
from anaphora.analysis.maps.kinds import pronoun_maps
from anaphora.analysis.tasks.antecedent_selection import Passages
from anaphora.base.batch import EncoderInput
from anaphora.base.errors import UserError
from anaphora.data.batches.encoded import EncodedSplit
from anaphora.data.example import Example
from anaphora.data.tokens.vocabulary import word_vocabulary
from anaphora.model.attention import attend, merge_heads
from anaphora.model.encoder import Encoder
from anaphora.model.pretrained.weights import to_bert
from anaphora.model.pronoun_model import PronounModel
from anaphora.settings.model import attention as attention_settings
from anaphora.settings.model import encoder as model_settings
from anaphora.settings.model import position as position_settings
from anaphora.settings.model import prediction as prediction_settings
from anaphora.settings.training import Batching

SECOND = torch.tensor([[False] * 4 + [True] * 2 + [False] * 2])
EXAMPLE = Example(
    text="anna met berta when she left",
    language="en",
    pronoun=(20, 23),
    candidates=(((0, 4),), ((9, 14),)),
    antecedents=(0,),
)
TOKENIZER = word_vocabulary([EXAMPLE.text], min_count=1)
PRONOUN = 5  # its token, behind [CLS]
ROWS = Batching(tokens=64, row_tokens=32)


def pronoun_model() -> PronounModel:
    torch.manual_seed(0)
    return PronounModel(shape(second_sequence=True), prediction_settings.Word(), TOKENIZER.size).double().eval()


def two_sequences(tokens: EncoderInput) -> list[EncoderInput]:
    """Return the tokens outside `SECOND`, and those inside it, as separate inputs."""
    return [
        EncoderInput(tokens.ids[:, chosen[0]], tokens.positions[:, chosen[0]], tokens.segments[:, chosen[0]])
        for chosen in (~SECOND, SECOND)
    ]


def by_two_sequences(model: Encoder, first: EncoderInput, second: EncoderInput) -> Tensor:
    """Return the states of the second sequence, computed from the first one's keys and values: (1, T, W)."""
    question = model.make_context(second)
    asking = question.embeddings
    for layer in model.passes(first):
        block, text, key, value = layer.block, layer.context, layer.key, layer.value
        query = block.project(asking, question)[0]
        uniform = isinstance(model.settings.attention, attention_settings.Uniform)
        bias = None if uniform else model.position.bias(question.positions, text.positions)
        asking = block.complete(asking, merge_heads(attend(query, key, value, bias)))
    states: Tensor = model.norm(asking)
    return states


@pytest.mark.parametrize("attention", ATTENTIONS, ids=lambda one: one.kind)
@pytest.mark.parametrize("position", POSITIONS, ids=lambda one: one.kind)
def test_queries_come_from_the_second_sequence_and_keys_and_values_from_the_first(
    position: position_settings.Position, attention: attention_settings.Attention
) -> None:
    model = encoder(position=position, attention=attention)
    packed = pack([sentence(8)])
    states = model(replace(packed, second=SECOND))
    first, second = two_sequences(packed)
    torch.testing.assert_close(states[SECOND], by_two_sequences(model, first, second)[0])
    torch.testing.assert_close(states[~SECOND], model(first)[0])


@pytest.mark.parametrize("changes", [*({"norm": one} for one in NORMS), {"values": "token"}], ids=str)
def test_that_holds_for_every_norm_and_for_token_values(changes: dict[str, object]) -> None:
    model, packed = encoder(**changes), pack([sentence(8)])
    states = model(replace(packed, second=SECOND))
    torch.testing.assert_close(states[SECOND], by_two_sequences(model, *two_sequences(packed))[0])


def test_a_second_sequence_in_a_packed_row_reads_its_own_text_alone() -> None:
    model = encoder()
    alone = model(replace(pack([sentence(8)]), second=SECOND))
    both = torch.cat((torch.zeros(1, 3, dtype=torch.bool), SECOND, torch.zeros(1, 2, dtype=torch.bool)), dim=1)
    packed = model(replace(pack([sentence(3, 1), sentence(8)], padding=2), second=both))
    torch.testing.assert_close(packed[0, 3:11], alone[0])


def test_every_map_of_the_pronoun_lies_on_the_text_and_can_be_scored() -> None:
    model, data = pronoun_model(), EncodedSplit([EXAMPLE], TOKENIZER)
    rows = model.forward_with_rows(data.batch([[0]])).rows
    assert rows is not None and not rows[..., PRONOUN].any()
    _, maps = whole_maps(model, TOKENIZER, EXAMPLE)
    assert not maps[..., PRONOUN].any() and maps.sum(axis=-1) == pytest.approx(1, abs=1e-6)
    kinds = pronoun_maps(model, data, ROWS)
    assert not kinds["raw"].records[0].weights[..., PRONOUN].any()
    for name, rows_of_kind in kinds.items():
        assert rows_of_kind.records[0].weights.sum(axis=-1) == pytest.approx(1, abs=1e-5), name


def test_the_setting_changes_what_the_pronoun_hears_and_what_the_others_hear() -> None:
    model, batch = pronoun_model(), EncodedSplit([EXAMPLE], TOKENIZER).batch([[0]])
    tokens = model.encoder_input(batch)
    assert tokens.second is not None
    apart, together = model.encoder(tokens), model.encoder(replace(tokens, second=None))
    assert (apart - together).abs().amax(dim=2).min() > 1e-3


def test_what_needs_the_pronoun_in_the_text_is_refused_in_one_sentence() -> None:
    with pytest.raises(UserError, match=r"\(model.second_sequence\): name the pronoun"):
        text_maps(pronoun_model(), TOKENIZER, EXAMPLE.text)
    with pytest.raises(UserError, match="reads one pronoun of a text; here every mention is evaluated"):
        next(Passages([EXAMPLE], TOKENIZER).records(pronoun_model().encoder, ROWS))
    bert = {
        "position": position_settings.Learned(max_length=9),
        "norm": model_settings.LayerNorm(placement="post", embedding=True),
    }
    with pytest.raises(UserError, match=r"BERT has no counterpart for model.second_sequence \(true\)"):
        to_bert(encoder(second_sequence=True, **bert))
    for network in RECURRENT:
        with pytest.raises(ValueError, match=f"and model.attention={network.kind} reads one alone"):
            shape(second_sequence=True, attention=network)

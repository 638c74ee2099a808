"""Attention from a second sequence: its tokens are queries alone, the first sequence's are keys and values."""

from __future__ import annotations

import pytest
import torch
from encoders import ATTENTIONS, NORMS, POSITIONS, RECURRENT, encoder, pack, sentence, shape
from torch import Tensor

from anaphora.analysis.capture import text_maps, whole_maps
from anaphora.analysis.flow import pronoun_maps
from anaphora.analysis.passages import Passages
from anaphora.data.batch import Encoded
from anaphora.data.example import Example
from anaphora.data.settings import Batching
from anaphora.data.vocabulary import of_words
from anaphora.errors import UserError
from anaphora.model import settings
from anaphora.model.attention import attend, side_by_side
from anaphora.model.encoder import Encoder
from anaphora.model.pretrained import exported
from anaphora.model.resolver import Resolver

SECOND = torch.tensor([[False] * 4 + [True] * 2 + [False] * 2])
EXAMPLE = Example(
    text="anna met berta when she left",
    language="en",
    pronoun=(20, 23),
    candidates=(((0, 4),), ((9, 14),)),
    antecedents=(0,),
)
TOKENIZER = of_words([EXAMPLE.text], min_count=1)
PRONOUN = 5  # its token, behind [CLS]
ROWS = Batching(tokens=64, row_tokens=32)


def resolver() -> Resolver:
    torch.manual_seed(0)
    return Resolver(shape(second_sequence=True), settings.Word(), TOKENIZER.size).double().eval()


def by_two_sequences(model: Encoder, first: list[Tensor], second: list[Tensor]) -> Tensor:
    """The second sequence's states, from the first's keys and values alone: both are ids, places, segments (1, T)."""
    text, question = model.begin(*first), model.begin(*second)
    read, asking = text.embedded, question.embedded
    for block in model._blocks():
        query = block.project(asking, question)[0]
        _, key, value = block.project(read, text)
        uniform = isinstance(model.settings.attention, settings.Uniform)
        bias = None if uniform else model.position.bias(question.places, text.places)
        asking = block.complete(asking, side_by_side(attend(query, key, value, bias)))
        read = block(read, text)
    states: Tensor = model.norm(asking)
    return states


@pytest.mark.parametrize("attention", ATTENTIONS, ids=lambda one: one.kind)
@pytest.mark.parametrize("position", POSITIONS, ids=lambda one: one.kind)
def test_queries_come_from_the_second_sequence_and_keys_and_values_from_the_first(
    position: settings.Position, attention: settings.Attention
) -> None:
    model = encoder(position=position, attention=attention)
    packed = pack([sentence(8)])
    states = model(*packed, second=SECOND)
    first, second = ([part[:, here[0]] for part in packed] for here in (~SECOND, SECOND))
    torch.testing.assert_close(states[SECOND], by_two_sequences(model, first, second)[0])
    torch.testing.assert_close(states[~SECOND], model(*first)[0])


@pytest.mark.parametrize("changes", [*({"norm": one} for one in NORMS), {"values": "token"}], ids=str)
def test_that_holds_for_every_norm_and_for_token_values(changes: dict[str, object]) -> None:
    model, packed = encoder(**changes), pack([sentence(8)])
    first, second = ([part[:, here[0]] for part in packed] for here in (~SECOND, SECOND))
    torch.testing.assert_close(model(*packed, second=SECOND)[SECOND], by_two_sequences(model, first, second)[0])


def test_a_second_sequence_in_a_packed_row_reads_its_own_text_alone() -> None:
    model = encoder()
    alone = model(*pack([sentence(8)]), second=SECOND)
    both = torch.cat((torch.zeros(1, 3, dtype=torch.bool), SECOND, torch.zeros(1, 2, dtype=torch.bool)), dim=1)
    packed = model(*pack([sentence(3, 1), sentence(8)], padding=2), second=both)
    torch.testing.assert_close(packed[0, 3:11], alone[0])


def test_every_map_of_the_pronoun_lies_on_the_text_and_can_be_scored() -> None:
    model, data = resolver(), Encoded([EXAMPLE], TOKENIZER)
    rows = model.see_with_rows(data.batch([[0]])).rows
    assert rows is not None and not rows[..., PRONOUN].any()
    _, maps = whole_maps(model, TOKENIZER, EXAMPLE, settings.Word())
    assert not maps[..., PRONOUN].any() and maps.sum(axis=-1) == pytest.approx(1, abs=1e-6)
    found = pronoun_maps(model, data, ROWS, settings.Word(), steps=2)
    assert not found["raw"].records[0].weights[..., PRONOUN].any()
    for name, one in found.items():
        assert one.records[0].weights.sum(axis=-1) == pytest.approx(1, abs=1e-5), name


def test_the_setting_changes_what_the_pronoun_hears_and_what_the_others_hear() -> None:
    model, batch = resolver(), Encoded([EXAMPLE], TOKENIZER).batch([[0]])
    inside = (batch.inputs, batch.places, batch.segments)
    second, one = model.encoder(*inside, second=model.second(batch)), model.encoder(*inside)
    assert (second - one).abs().amax(dim=2).min() > 1e-3


def test_what_needs_the_pronoun_in_the_text_is_refused_in_one_sentence() -> None:
    with pytest.raises(UserError, match=r"\(model.second_sequence\): name the pronoun"):
        text_maps(resolver(), TOKENIZER, EXAMPLE.text)
    with pytest.raises(UserError, match="asks one pronoun of a text, and here every mention is asked"):
        next(Passages([EXAMPLE], TOKENIZER).records(resolver().encoder, ROWS))
    bert = {"position": settings.Learned(max_length=9), "norm": settings.LayerNorm(placement="post", embedding=True)}
    with pytest.raises(UserError, match=r"BERT has no counterpart of model.second_sequence \(true\)"):
        exported(encoder(second_sequence=True, **bert))
    for network in RECURRENT:
        with pytest.raises(ValueError, match=f"and model.attention={network.kind} reads one alone"):
            shape(second_sequence=True, attention=network)

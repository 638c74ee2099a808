from __future__ import annotations

import pytest
import torch
from encoders import encoder, pack, sentence

from anaphora.analysis.causal.interventions import PROJECTIONS, permutation_within_sentences, permuted_projections
from anaphora.base.errors import UserError
from anaphora.settings.model import attention as attention_settings


def test_tokens_are_permuted_within_their_sentence_and_padding_to_itself() -> None:
    segments = torch.tensor([[0] * 6 + [1] * 5 + [-1] * 3])
    order = permutation_within_sentences(segments, torch.Generator().manual_seed(0))
    torch.testing.assert_close(segments.gather(1, order), segments)
    assert sorted(order[0].tolist()) == list(range(14))
    assert order[0, :11].tolist() != list(range(11))


@pytest.mark.parametrize("part", PROJECTIONS)
def test_shuffling_a_part_changes_the_states_and_ends_with_the_block(part: str) -> None:
    model, row = encoder(), pack([sentence(9)])
    before = model(row)
    with permuted_projections(model, part, seed=0):
        changed = model(row)
    assert (changed - before).abs().max() > 1e-3
    torch.testing.assert_close(model(row), before)


def test_shuffling_values_leaves_the_first_layers_weights_as_they_are() -> None:
    model, row = encoder(), pack([sentence(9)])
    before = next(model.maps(row))
    with permuted_projections(model, "value", seed=0):
        torch.testing.assert_close(next(model.maps(row)), before)
    with permuted_projections(model, "key", seed=0):
        assert (next(model.maps(row)) - before).abs().max() > 1e-3


def test_what_has_no_queries_cannot_be_shuffled() -> None:
    with (
        pytest.raises(UserError, match="must be one of query, key, value, in an encoder with attention"),
        permuted_projections(encoder(attention=attention_settings.Gru()), "query", 0),
    ):
        pass

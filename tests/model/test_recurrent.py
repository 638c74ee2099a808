"""Tests of recurrent networks with the encoder's interface, and of the setting for the scale of attention scores."""

from __future__ import annotations

import pytest
import torch
from encoders import POSITIONS, RECURRENT, encoder, pack, sentence, shape

from anaphora.base.errors import UserError
from anaphora.model.encoder import Encoder
from anaphora.settings.model import attention as attention_settings
from anaphora.settings.model import position as position_settings

every_network = pytest.mark.parametrize("network", RECURRENT, ids=lambda one: one.kind)


@every_network
@pytest.mark.parametrize("position", [POSITIONS[0], POSITIONS[1]], ids=lambda one: one.kind)
def test_packing_and_padding_change_nothing(
    network: attention_settings.Attention, position: position_settings.Position
) -> None:
    first, second = sentence(5, 1), sentence(9, 2)
    model = encoder(attention=network, position=position)
    packed, alone = model(pack([first, second], padding=3)), model(pack([second]))
    torch.testing.assert_close(packed[0, 5:14], alone[0])
    assert packed.isfinite().all()


@every_network
def test_every_state_hears_of_the_whole_sentence_and_of_its_order(network: attention_settings.Attention) -> None:
    model, words = encoder(attention=network, position=position_settings.NoPosition()), sentence(8)
    changed, order = words.clone(), torch.tensor([3, 0, 7, 5, 1, 6, 2, 4])
    changed[7] = (changed[7] + 1) % 50
    before = model(pack([words]))[0]
    assert (model(pack([changed]))[0] - before).abs().amax(dim=1).min() > 1e-6
    assert (model(pack([words[order]]))[0] - before[order]).abs().max() > 1e-3


@every_network
def test_every_weight_of_a_recurrent_network_trains(network: attention_settings.Attention) -> None:
    model = encoder(attention=network).train()
    torch.autograd.backward(model(pack([sentence(6)], padding=2))[:, :6].square().sum())
    assert all(weight.grad is not None and weight.grad.any() for weight in model.parameters())


@every_network
def test_a_recurrent_layer_is_about_as_large_as_one_of_attention(network: attention_settings.Attention) -> None:
    size = [sum(weight.numel() for weight in Encoder(shape(width=64, attention=one), 50).parameters())
            for one in (network, attention_settings.MultiHead(heads=2))]  # fmt: skip
    assert size[0] == pytest.approx(size[1], rel=0.2)


@every_network
def test_whoever_asks_for_its_maps_is_refused_in_one_sentence(network: attention_settings.Attention) -> None:
    model, row = encoder(attention=network), pack([sentence(6)])
    assert not model.has_maps
    message = "model.attention is a recurrent network, which has no attention maps"
    with pytest.raises(UserError, match=message):
        list(model.maps(row))
    with pytest.raises(UserError, match=message):
        model.forward_with_rows(row, (torch.tensor([0]), torch.tensor([2])))


@every_network
def test_token_values_are_for_attention_alone(network: attention_settings.Attention) -> None:
    with pytest.raises(ValueError, match=rf"model.attention={network.kind} mixes hidden states.*model.values=hidden"):
        shape(attention=network, values="token")


@pytest.mark.parametrize(
    "kind", [attention_settings.MultiHead, attention_settings.SharedQueryKey], ids=lambda one: one.__name__
)
def test_without_the_scale_scores_spread_rows_sharpen_and_weights_still_mix(
    kind: type[attention_settings.MultiHead],
) -> None:
    words, maps, states = pack([sentence(9)]), {}, {}
    for scaled in (True, False):
        model = encoder(attention=kind(heads=2, scaled=scaled), layers=1)
        maps[scaled], states[scaled] = next(model.maps(words)), model(words)
        rows = model.forward_with_rows(words, (torch.tensor([0]), torch.tensor([4])))[1]
        torch.testing.assert_close(rows[0, 0], maps[scaled][0, :, 4])
    log = {scaled: one.log() for scaled, one in maps.items()}
    centred = {scaled: one - one.mean(dim=-1, keepdim=True) for scaled, one in log.items()}
    torch.testing.assert_close(centred[False], centred[True] * 8**0.5)  # 8 features a head
    entropy = {scaled: torch.special.entr(one).sum(dim=-1).mean() for scaled, one in maps.items()}
    assert entropy[False] < entropy[True]
    assert not torch.allclose(states[False], states[True])

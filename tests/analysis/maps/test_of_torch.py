from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from anaphora.analysis.maps.of_torch import encoder_maps, maps_of_layers
from anaphora.analysis.maps.record import from_arrays
from anaphora.base.errors import UserError

TEXT = "Anna saw her"


def encoder(first: bool = True) -> nn.TransformerEncoder:
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.5, batch_first=first)
    return nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).eval()


@pytest.mark.parametrize("first", [True, False])
def test_maps_of_torchs_encoder_are_its_own_attention(first: bool) -> None:
    model, source = encoder(first), torch.randn(2, 4, 8)
    padding = torch.tensor([[False] * 4, [False, False, False, True]])
    given = source if first else source.transpose(0, 1)
    before = model(given, src_key_padding_mask=padding)
    maps = encoder_maps(model, given, src_key_padding_mask=padding)
    assert [tuple(layer.shape) for layer in maps] == [(2, 2, 4, 4)] * 2
    own = model.layers[0].self_attn(given, given, given, key_padding_mask=padding, average_attn_weights=False)[1]
    assert torch.allclose(maps[0], own, atol=1e-6)
    assert (maps[1][1, :, :, 3] == 0).all()
    assert torch.allclose(model(given, src_key_padding_mask=padding), before)  # nothing stays behind
    assert not model.layers[0].self_attn._forward_hooks


def test_a_bias_is_added_to_the_scores_as_in_training() -> None:
    model, source = encoder(), torch.randn(1, 4, 8)
    bias = -0.5 * (torch.arange(4)[:, None] - torch.arange(4)).abs()
    own = model.layers[0].self_attn(source, source, source, attn_mask=bias, average_attn_weights=False)[1]
    maps = encoder_maps(model, source, mask=bias)
    assert torch.allclose(maps[0], own, atol=1e-6)
    assert all((layer > 0).all() for layer in maps)  # torch's fused path would hide all but the token itself


def test_a_training_encoder_is_read_without_dropout_and_goes_on_training() -> None:
    model, source = encoder(), torch.randn(1, 3, 8)
    expected = encoder_maps(model, source)
    model.train()
    model.layers[0].eval()
    assert torch.allclose(encoder_maps(model, source)[1], expected[1])
    assert model.training and model.layers[1].training and not model.layers[0].training


def test_one_sentence_becomes_a_record_without_its_padding() -> None:
    maps = maps_of_layers(encoder_maps(encoder(), torch.randn(2, 5, 8)), sentence=1, tokens=3)
    assert maps.shape == (2, 2, 3, 3)
    whole = maps / maps.sum(axis=-1, keepdims=True)
    record = from_arrays(TEXT, [(0, 4), (5, 8), (9, 12)], whole, (9, 12), [(0, 4)], [0], language="en")
    assert np.array_equal(record.weights, whole[:, :, 2])


def test_wrong_shapes_are_reported() -> None:
    with pytest.raises(UserError, match="there is no layer"):
        maps_of_layers([])
    with pytest.raises(UserError, match=r"layer 1 has the shape \(2, 3\)"):
        maps_of_layers([torch.ones(1, 2, 3, 3), torch.ones(2, 3)])
    with pytest.raises(UserError, match="different shapes"):
        maps_of_layers([torch.ones(1, 2, 3, 3), torch.ones(1, 4, 3, 3)])


@pytest.mark.parametrize(
    ("layers", "sentence"),
    [
        (None, 0),
        ([None], 0),
        ([np.ones((1, 2, 3, 3)), None], 0),
        ([np.ones((1, 2, 3, 3))], 1),
        ([np.ones((1, 2, 3, 3))], -2),
        ([np.ones((1, 2, 3, 3))], None),
        ([np.array([["x"]])], 0),
    ],
)
def test_what_is_no_map_and_a_sentence_that_is_not_there_are_named_in_one_line(layers: Any, sentence: Any) -> None:
    with pytest.raises(UserError) as caught:
        maps_of_layers(layers, sentence)
    assert "\n" not in str(caught.value)

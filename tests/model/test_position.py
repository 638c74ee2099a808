"""Tests of position encodings against values computed by hand from the papers."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from encoders import encoder, pack, sentence

from anaphora.base.errors import UserError
from anaphora.model.position import Alibi, Learned, Position, Rotary, Sinusoidal, T5Relative


def test_alibi_takes_the_same_off_on_both_sides_by_the_distance_and_the_slope_of_the_head() -> None:
    # Press et al. 2022, section 3: slopes begin at 2 ** (-8 / n) of n heads, with the same ratio; of two: 1/16, 1/256.
    query, keys = torch.tensor([[2]]), torch.tensor([[0, 1, 2, 3, 6]])
    distances = torch.tensor([2.0, 1.0, 0.0, 1.0, 4.0])
    bias = Alibi(heads=2).bias(query, keys)
    torch.testing.assert_close(bias, torch.stack((-distances / 16, -distances / 256))[None, :, None])


@pytest.mark.parametrize(
    ("offset", "bucket"),
    [
        # Raffel et al. 2020, section 2.1, 32 buckets to distance 128: of the 16 of a side 8 are single distances, and a
        # distance d beyond is in bucket 8 + floor(8 log(d / 8) / log(16)), in the last one from 128 on.
        *((0, 0), (-1, 1), (-7, 7), (-8, 8), (-12, 9), (-20, 10), (-40, 12), (-100, 15), (-1000, 15)),
        *((1, 17), (7, 23), (8, 24), (12, 25), (20, 26), (40, 28), (100, 31), (1000, 31)),
    ],
)
def test_the_bucket_of_a_distance_and_its_side_are_those_of_t5(offset: int, bucket: int) -> None:
    position = T5Relative(heads=1, buckets=32, max_distance=128)
    assert position.bucket(torch.tensor([offset])).tolist() == [bucket]
    with torch.no_grad():
        position.table.weight[:, 0] = torch.arange(32.0)
    # An offset is the key's position less the query's.
    assert position.bias(torch.tensor([[1000]]), torch.tensor([[1000 + offset]])).item() == bucket


def test_rotary_turns_each_pair_by_the_position_times_its_frequency() -> None:
    # Su et al. 2021, eq. 34: of 4 features to base 10,000 the pairs (0, 2) and (1, 3) turn by m and by m / 100.
    turned = Rotary(4, 10_000.0).rotate(torch.tensor([[[[1.0, 1.0, 0.0, 0.0]]]]), torch.tensor([[3]]))
    expected = [math.cos(3), math.cos(0.03), math.sin(3), math.sin(0.03)]
    torch.testing.assert_close(turned, torch.tensor([[[expected]]]))


class RotaryInEachLayer(Rotary):
    """Rotary encoding that evaluates the formula in each layer, separately for queries and keys."""

    def rotate(self, heads: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        angles = (positions.unsqueeze(-1) * self.frequencies).unsqueeze(1)
        cosine, sine = angles.cos().to(heads.dtype), angles.sin().to(heads.dtype)
        first, second = heads.chunk(2, dim=-1)
        return torch.cat((first * cosine - second * sine, second * cosine + first * sine), dim=-1)

    def rotation(self, positions: torch.Tensor) -> Callable[[torch.Tensor], torch.Tensor]:
        return Position.rotation(self, positions)


@pytest.mark.parametrize("padding", [0, 5])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_angles_shared_by_the_layers_give_bit_by_bit_what_each_layer_would_compute(
    padding: int, dtype: torch.dtype
) -> None:
    model = encoder(layers=3).float()
    tokens = pack([sentence(9, 1), sentence(6, 2), sentence(11, 3)], padding=padding)
    queries = (torch.tensor([0, 0]), torch.tensor([3, 12]))
    shared = model.position
    assert isinstance(shared, Rotary)
    results = []
    for position in (shared, RotaryInEachLayer(8, 10_000.0)):
        model.position = position
        model.zero_grad()
        with torch.autocast("cpu", dtype, enabled=dtype != torch.float32):
            states, rows = model.forward_with_rows(tokens, queries)
            maps = torch.cat(list(model.maps(tokens)))
        states.float().square().sum().backward()  # type: ignore[no-untyped-call]
        gradients = [weight.grad for weight in model.parameters() if weight.grad is not None]
        results.append((states, rows, maps, *gradients))
    assert len(results[0]) > 20
    assert all(torch.equal(one, other) for one, other in zip(*results, strict=True))


def test_sinusoidal_adds_the_waves_of_the_paper() -> None:
    # Vaswani et al. 2017, section 3.5: wave lengths 2 pi and 2 pi * 100 of 4 features; sines, then cosines.
    waves = Sinusoidal(4, 10_000.0).embed(torch.ones(1, 1, 4), torch.tensor([[3]]))
    expected = [1 + math.sin(3), 1 + math.sin(0.03), 1 + math.cos(3), 1 + math.cos(0.03)]
    torch.testing.assert_close(waves, torch.tensor([[expected]]))


def test_learned_positions_are_added_up_to_the_longest_text_and_not_beyond() -> None:
    position = Learned(width=2, max_length=3)
    hidden = torch.ones(1, 3, 2)
    torch.testing.assert_close(position.embed(hidden, torch.arange(3)[None])[0], position.table.weight + 1)
    with pytest.raises(UserError, match="a text of 4 tokens is longer than"):
        position.embed(torch.ones(1, 4, 2), torch.arange(4)[None])
    assert position.embed(hidden[:, :0], torch.arange(0)[None]).shape == (1, 0, 2)


def test_what_is_computed_from_the_settings_is_not_stored_with_the_weights() -> None:
    computed = (Sinusoidal(4, 10_000.0), Rotary(4, 10_000.0), Alibi(heads=2))
    assert [list(position.state_dict()) for position in computed] == [[], [], []]

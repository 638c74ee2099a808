"""Position encodings beside values computed by hand from the papers."""

from __future__ import annotations

import pytest
import torch

from anaphora.model.position import Alibi, T5Relative


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

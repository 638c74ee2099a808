"""Position encodings, which act on the embedding, on queries and keys (rotation) or on the scores (bias).

`positions` restart at 0 in every sentence. In shapes, B is the batch size, T the number of tokens, H of heads, D of
features per head, Q of queries, and K of keys; W is the width.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from anaphora.base.errors import UserError


class Position(nn.Module):
    """Base class of position encodings; used directly, it encodes no positions, so the input is a bag of tokens.

    `scale` is a factor of the token embeddings, applied before candidate markers and positions are added.
    """

    scale: float = 1.0

    def embed(self, hidden: Tensor, positions: Tensor) -> Tensor:
        """Add position vectors to the embedding, (B, T, W); this class returns the embedding unchanged.

        Raises:
            UserError: a sentence is longer than `model.position.max_length`.
        """
        return hidden

    def rotate(self, heads: Tensor, positions: Tensor) -> Tensor:
        """Rotate queries or keys, (B, H, T, D), by position; this class returns them unchanged."""
        return heads

    def rotation(self, positions: Tensor) -> Callable[[Tensor], Tensor]:
        """Return a function that rotates queries or keys, (B, H, T, D), by `positions`, (B, T); all layers share it."""
        return lambda heads: self.rotate(heads, positions)

    def bias(self, query_positions: Tensor, key_positions: Tensor) -> Tensor | None:
        """Return the bias added to the scores, broadcastable to (B, H, Q, K); None, as in this class, adds no bias."""
        return None


class Sinusoidal(Position):
    """Fixed sinusoids added to the embedding, Vaswani et al. 2017, section 3.5 (sines first, then cosines).

    Embeddings are first multiplied by sqrt(W), as in section 3.4; otherwise the sinusoids would dominate them.
    """

    frequencies: Tensor

    def __init__(self, width: int, base: float) -> None:
        super().__init__()
        self.scale = math.sqrt(width)
        self.register_buffer("frequencies", _frequencies(width, base), persistent=False)

    def embed(self, hidden: Tensor, positions: Tensor) -> Tensor:
        angles = positions.unsqueeze(-1) * self.frequencies
        return hidden + torch.cat((angles.sin(), angles.cos()), dim=-1).to(hidden.dtype)


class Learned(Position):
    """One trained vector per position, added to the embedding."""

    def __init__(self, width: int, max_length: int) -> None:
        super().__init__()
        self.table = nn.Embedding(max_length, width)

    def embed(self, hidden: Tensor, positions: Tensor) -> Tensor:
        """Add position vectors, (B, T, W); raise UserError if a text is longer than `model.position.max_length`."""
        longest = int(positions.max()) + 1 if positions.numel() else 0
        if longest > self.table.num_embeddings:
            raise UserError(
                f"a text of {longest} tokens is longer than model.position.max_length ({self.table.num_embeddings})"
            )
        added: Tensor = self.table(positions)
        return hidden + added


class Rotary(Position):
    """Rotation of each pair of features by an angle proportional to the position, Su et al. 2021, eq. 34.

    Features i and i + D/2 are paired, as in GPT-NeoX (Black et al. 2022), not i and i + 1; this only permutes features.
    """

    frequencies: Tensor

    def __init__(self, features: int, base: float) -> None:
        super().__init__()
        self.register_buffer("frequencies", _frequencies(features, base), persistent=False)

    def rotate(self, heads: Tensor, positions: Tensor) -> Tensor:
        return self.rotation(positions)(heads)

    def rotation(self, positions: Tensor) -> Callable[[Tensor], Tensor]:
        angles = (positions.unsqueeze(-1) * self.frequencies).unsqueeze(1)  # (B, 1, T, D/2)
        cosines = angles.cos().repeat(1, 1, 1, 2)
        sines = torch.cat((-angles.sin(), angles.sin()), dim=-1)

        def turned(heads: Tensor) -> Tensor:
            partners = heads.roll(heads.shape[-1] // 2, dims=-1)
            return heads * cosines.to(heads.dtype) + partners * sines.to(heads.dtype)

        return turned


class Alibi(Position):
    """Penalty on each score, proportional to the distance between query and key (Press et al. 2022, section 3).

    Unlike in the paper, keys after the query get a penalty too. Each head has its own slope, the penalty per token.
    """

    slopes: Tensor

    def __init__(self, heads: int) -> None:
        super().__init__()
        slopes = 2.0 ** (-8.0 * torch.arange(1, heads + 1) / heads)
        self.register_buffer("slopes", slopes, persistent=False)

    def bias(self, query_positions: Tensor, key_positions: Tensor) -> Tensor:
        distance = (query_positions.unsqueeze(-1) - key_positions.unsqueeze(-2)).abs()
        return -self.slopes.view(1, -1, 1, 1) * distance.unsqueeze(1).to(self.slopes.dtype)


class T5Relative(Position):
    """Trained bias for each distance bucket and head, Raffel et al. 2020, section 2.1, bidirectional.

    Keys before and keys after the query have separate buckets. Half of the buckets hold one distance each; the others
    hold ranges of distances up to `max_distance`, equally wide on a logarithmic scale. All layers share the biases.
    """

    def __init__(self, heads: int, buckets: int, max_distance: int) -> None:
        super().__init__()
        self.table = nn.Embedding(buckets, heads)
        self.max_distance = max_distance

    def bucket(self, offset: Tensor) -> Tensor:
        """Return the bucket, in [0, buckets), of each offset (key position - query position), in the same shape."""
        side = self.table.num_embeddings // 2
        exact = side // 2
        distance = offset.abs()
        growth = (distance.clamp(min=1) / exact).log() / math.log(self.max_distance / exact)
        far = (exact + (growth * (side - exact)).long()).clamp(max=side - 1)
        return torch.where(distance < exact, distance, far) + side * (offset > 0).long()

    def bias(self, query_positions: Tensor, key_positions: Tensor) -> Tensor:
        buckets = self.bucket(key_positions.unsqueeze(-2) - query_positions.unsqueeze(-1))
        scores: Tensor = self.table(buckets)
        return scores.permute(0, 3, 1, 2)


def _frequencies(features: int, base: float) -> Tensor:
    return base ** (-torch.arange(0, features, 2, dtype=torch.float32) / features)

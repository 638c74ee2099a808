"""The encoder: token ids -> hidden states. Knows nothing of pronouns."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn

from anaphora.errors import UserError
from anaphora.model import norm, position, settings
from anaphora.model.attention import Context, only_asking, same_sentence
from anaphora.model.block import Block
from anaphora.parts import extensible


class Encoder(nn.Module):
    """Token embedding (+ position, + norm where it is asked for), blocks, and for pre-norm a last norm.

    Rows are packed: several sentences stand in one row, `segments` says which token belongs to which (-1 is padding)
    and `places` count anew in each. A padded batch is the case of one sentence a row.
    """

    def __init__(self, chosen: settings.Model, vocabulary: int) -> None:
        super().__init__()
        self.settings = chosen
        self.tokens = nn.Embedding(vocabulary, chosen.width)
        self.position = position.build(chosen.position, chosen.width, settings.heads_of(chosen.attention))
        self.embedding_norm = norm.build(chosen.norm, chosen.width) if chosen.norm.embedding else nn.Identity()
        self.dropout = nn.Dropout(chosen.dropout)
        self.blocks = nn.ModuleList(Block(chosen, self.position) for _ in range(chosen.layers))
        # After a post-norm block the features are normed already.
        self.norm = norm.build(chosen.norm, chosen.width) if chosen.norm.placement == "pre" else nn.Identity()
        self.apply(initialiser(chosen.initialisation))

    @property
    def has_maps(self) -> bool:
        """Whether there are attention weights to look at."""
        return all(block.attention.has_maps for block in self._blocks())

    def begin(
        self,
        ids: Tensor,
        places: Tensor,
        segments: Tensor,
        marks: Tensor | None = None,
        second: Tensor | None = None,
    ) -> Context:
        """What all layers share, the embedding included.

        Args:
            ids, places, segments: (B, T).
            marks: (B, T, W) or None.
            second: (B, T), which tokens are a second sequence that queries the rest of their sentence and that nothing
                queries, or None. Its places are in the text, as if it still stood there.
        """
        whole = second is None and _is_whole(segments)
        if whole:
            # Of a mask of zeros one is enough to hold.
            mask = torch.zeros((), device=ids.device).expand(len(ids), 1, ids.shape[1], ids.shape[1])
        else:
            mask = same_sentence(segments)
        if second is not None:
            mask = mask + only_asking(second)
        added = self.position.bias(places, places)
        return Context(
            embedded=self.embed(ids, places, marks),
            places=places,
            mask=mask,
            bias=mask if added is None else mask + added,
            segments=segments,
            plain=added is None and whole,
        )

    def embed(self, ids: Tensor, places: Tensor, marks: Tensor | None = None) -> Tensor:
        """What the first block reads: (B, T) -> (B, T, W); `marks` (B, T, W) is added to the tokens' embeddings."""
        hidden = self.looked_up(ids)
        if marks is not None:
            hidden = hidden + marks
        output: Tensor = self.dropout(self.embedding_norm(self.position.embed(hidden, places)))
        return output

    def looked_up(self, ids: Tensor) -> Tensor:
        """The tokens' own vectors, nothing added: (B, T) -> (B, T, W)."""
        vectors: Tensor = self.tokens(ids)
        return vectors if self.position.scale == 1 else vectors * self.position.scale

    def forward(
        self,
        ids: Tensor,
        places: Tensor,
        segments: Tensor,
        marks: Tensor | None = None,
        needed: Tensor | None = None,
        second: Tensor | None = None,
    ) -> Tensor:
        """Hidden states.

        Args:
            ids, places, segments: (B, T).
            marks: (B, T, W) or None.
            needed: (P,) different flat positions, row * T + token, whose states are wanted, or None for all. The last
                block's work on a token is done for these alone; the other states are zeros.
            second: as in `begin`.

        Returns:
            (B, T, W).
        """
        context = self.begin(ids, places, segments, marks, second)
        hidden = context.embedded
        *before, last = self._blocks()
        for block in before:
            hidden = block(hidden, context)
        mixed = last.attention.mix(*last.project(hidden, context), context)
        return self._complete(last, hidden, mixed, needed)

    def with_rows(
        self,
        ids: Tensor,
        places: Tensor,
        segments: Tensor,
        asked: tuple[Tensor, Tensor],
        marks: Tensor | None = None,
        needed: Tensor | None = None,
        second: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Hidden states, and the attention rows of the queries that are asked for, from the same projections.

        Args:
            ids, places, segments: (B, T).
            asked: row and token of each query, two of (Q,).
            marks: (B, T, W) or None.
            needed: as in `forward`.
            second: as in `begin`.

        Returns:
            (B, T, W) and (L, Q, H, T).
        """
        context = self.begin(ids, places, segments, marks, second)
        hidden = context.embedded
        rows = []
        for block in self._blocks():
            query, key, value = block.project(hidden, context)
            rows.append(block.attention.rows(query, key, context, asked))
            # Nobody reads the last states; an edit may want to see what the heads mix all the same.
            if block is self.blocks[-1] and needed is not None and not len(needed) and not block.attention.edits:
                return torch.zeros_like(hidden), torch.stack(rows)
            mixed = block.attention.mix(query, key, value, context)
            if block is self.blocks[-1]:
                hidden = self._complete(block, hidden, mixed, needed)
            else:
                hidden = block.complete(hidden, mixed)
        return hidden, torch.stack(rows)

    def maps(
        self,
        ids: Tensor,
        places: Tensor,
        segments: Tensor,
        marks: Tensor | None = None,
        second: Tensor | None = None,
    ) -> Iterator[Tensor]:
        """The whole attention map of one layer after the other, each (B, H, T, T); only one is held at a time."""
        context = self.begin(ids, places, segments, marks, second)
        hidden = context.embedded
        for block in self._blocks():
            query, key, value = block.project(hidden, context)
            yield block.attention.maps(query, key, context)
            hidden = block.complete(hidden, block.attention.mix(query, key, value, context))

    def _complete(self, last: Block, hidden: Tensor, mixed: Tensor, needed: Tensor | None) -> Tensor:
        if needed is None:
            whole: Tensor = self.norm(last.complete(hidden, mixed))
            return whole
        flat = hidden.flatten(0, 1)
        found: Tensor = self.norm(last.complete(flat[needed], mixed.flatten(0, 1)[needed]))
        return found.new_zeros(flat.shape).index_copy(0, needed, found).view_as(hidden)

    def _blocks(self) -> Iterator[Block]:
        for block in self.blocks:
            assert isinstance(block, Block)
            yield block


def _is_whole(segments: Tensor) -> bool:
    """Whether every row is one sentence without padding: (B, T). Not asked while compiling: that would break off."""
    if torch.compiler.is_compiling():
        return False
    return bool(((segments == segments[:, :1]) & (segments >= 0)).all())


def initialiser(chosen: settings.Initialisation) -> Callable[[nn.Module], None]:
    """The function that sets a module's first weights; biases begin at zero."""

    def initialise(module: nn.Module) -> None:
        if isinstance(module, nn.Linear | nn.Embedding):
            _begin(chosen, module.weight)
        if isinstance(module, nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)

    return initialise


@extensible(type(None))
def _begin(chosen: settings.Initialisation, weight: Tensor) -> None:
    """Fill a matrix of weights in place."""
    match chosen:
        case settings.Normal(deviation=deviation):
            nn.init.normal_(weight, std=deviation)
        case settings.Xavier():
            nn.init.xavier_uniform_(weight)
        case _:
            raise UserError(f"model.initialisation.kind ({chosen.kind!r}) is not one that this encoder can build")

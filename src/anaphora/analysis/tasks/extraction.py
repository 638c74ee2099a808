"""Extraction of attention rows of any number of items, which may be divided between parallel jobs (shards).

The items are divided into parts of about `PART_ITEMS` items, and each shard extracts some of the parts. A batch never
crosses parts, so that an item is in the same batch, and its weights are the same to the last bit, for any number of
shards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from anaphora.analysis.maps.capture import capture, captured_words
from anaphora.analysis.maps.rows import QueryRow
from anaphora.analysis.scores.heads import score_records
from anaphora.analysis.scores.summary import scores_table
from anaphora.base.errors import UserError, counted
from anaphora.data.batches.texts import EncodedChunks, QueriedChunk, queried_chunks
from anaphora.data.example import Example, items_by_group, sample_groups, to_record
from anaphora.data.grouping import portions
from anaphora.data.store import Corpus
from anaphora.data.text import Text
from anaphora.runs.directory import Run
from anaphora.runs.items import encode
from anaphora.settings.model.attention import heads_of
from anaphora.settings.model.encoder import check_length

if TYPE_CHECKING:
    import pyarrow

PART_ITEMS = 512
"""Number of items from which a part of a split is complete."""
PART_CHARACTERS = 400_000
"""Total length of texts, in characters, from which a part with fewer items is complete."""
_SAMPLE = 64  # number of items from which the size of the output is estimated


@dataclass(frozen=True)
class Selection:
    """Items of a split from which attention rows are extracted; the items are loaded on demand."""

    groups: list[str]  # group of each of N items
    characters: NDArray[np.int64]  # length of each item's text in characters, (N,)
    read: Callable[[Sequence[int]], Sequence[Example | Text]]  # function that returns the items with given indices
    fingerprint: str = ""  # hash of the corpus; empty for the user's own sentence

    def __len__(self) -> int:
        return len(self.groups)

    def limited(self, most: int | None) -> Selection:
        """Return a selection of approximately `most` of these items, or all of them if `most` is None.

        Whole groups of items, such as the items of one document, are selected at even intervals.
        """
        if most is None:
            return self
        kept = sample_groups(self.groups, most)
        return replace(
            self,
            groups=[self.groups[number] for number in kept],
            characters=self.characters[kept],
            read=lambda numbers: self.read([kept[number] for number in numbers]),
        )

    def parts(self) -> list[list[int]]:
        """Divide the items into parts without splitting a group; return each part's item indices in ascending order.

        A part ends as soon as its groups have `PART_ITEMS` items or `PART_CHARACTERS` characters.
        """
        parts: list[list[int]] = [[]]
        characters = 0
        for members in items_by_group(self.groups).values():
            if len(parts[-1]) >= PART_ITEMS or characters >= PART_CHARACTERS:
                parts.append([])
                characters = 0
            parts[-1] += members
            characters += int(self.characters[members].sum())
        return [sorted(part) for part in parts]

    def shard(self, number: int, count: int) -> list[list[int]]:
        """Return the item indices of each part that shard `number` of `count` extracts; shards are counted from 1.

        Raises:
            UserError: there are fewer parts than shards.
        """
        parts = self.parts()
        if count > len(parts):
            raise UserError(
                f"shard ({number}/{count}): {counted(len(self), 'item')} can be divided into "
                f"{counted(len(parts), 'part')} of whole groups; take at most {len(parts)} shards"
            )
        return parts[len(parts) * (number - 1) // count : len(parts) * number // count]


def select_items(corpus: Corpus, split: str, most: int | None) -> Selection:
    """Select approximately `most` items of a split in whole groups, or all items if `most` is None.

    Raises:
        UserError: the split is empty.
    """
    read = corpus.examples if corpus.asks_about_pronouns else corpus.texts
    groups = corpus.groups(split)
    if not groups:
        raise UserError(f"split ({split}) holds no {'items' if corpus.asks_about_pronouns else 'texts'}")
    every = Selection(groups, corpus.characters(split), lambda numbers: list(read(split, numbers)), corpus.fingerprint)
    return every.limited(most)


def single_item(item: Example | Text) -> Selection:
    """Return a selection that consists of one item."""
    return Selection([""], np.array([len(item.text)]), lambda numbers: [item] * len(numbers))


@dataclass(frozen=True)
class ExtractedBatch:
    """Attention rows that are written to the output file together, with their items and scores."""

    items: list[dict[str, Any]]  # index ("item") and fields of items; each is listed once, not later than its rows
    rows: list[QueryRow]  # attention rows of the pronouns or query words
    scores: pyarrow.Table | None  # table of the items that can be scored (`scores_table`); None for texts


@dataclass(frozen=True)
class Extractor:
    """Extractor of a run's attention rows, with the pronouns of examples or chosen words of plain texts as queries."""

    run: Run
    selection: Selection
    words: Sequence[str]  # query words in plain texts; empty for all words
    chunk_tokens: int  # maximum number of tokens in a chunk of a text
    most_weights: int  # maximum number of attention weights in memory, unless one item has more

    def batches(self, parts: Sequence[Sequence[int]]) -> Iterator[ExtractedBatch]:
        """Yield the attention rows of items in batches; `parts` lists the item indices of each part of the selection.

        A text without any of the query words has no rows.

        Raises:
            UserError: an item is too long for the model, or the model has no attention maps. For plain texts also: the
                chunks are too long, or the model needs a pronoun as a second input sequence.
        """
        for part in parts:
            count = max(1, len(part) // PART_ITEMS)  # a part with a large group has more than `PART_ITEMS` items
            for window in range(count):
                numbers = part[len(part) * window // count : len(part) * (window + 1) // count]
                items = self.selection.read(numbers)
                examples = [item for item in items if isinstance(item, Example)]
                if examples:
                    yield from self._of_pronouns(numbers, examples)
                else:
                    yield from self._of_words(numbers, [item for item in items if isinstance(item, Text)])

    def _of_pronouns(self, numbers: Sequence[int], examples: Sequence[Example]) -> Iterator[ExtractedBatch]:
        data = encode(self.run, examples)
        listed = self._portions(data.ids.lengths.tolist())
        for portion in listed:
            own = data if len(listed) == 1 else encode(self.run, [examples[index] for index in portion])
            captured = capture(self.run.model, own, self.run.config.batching)
            records = [(numbers[index], record) for index, record in zip(portion, captured.records, strict=True)]
            scores = score_records(captured.records)
            kept = np.array(numbers)[list(portion)][scores.kept]
            yield ExtractedBatch(
                items=[{"item": number, **to_record(record.example)} for number, record in records],
                rows=[QueryRow.of_record(number, record) for number, record in records],
                scores=scores_table(replace(scores, kept=kept), captured.correct[scores.kept]),
            )

    def _of_words(self, numbers: Sequence[int], texts: Sequence[Text]) -> Iterator[ExtractedBatch]:
        chunks = self._chunks(texts)
        items = [
            {"item": number, **{name: value for name, value in asdict(text).items() if value}}
            for number, text in zip(numbers, texts, strict=True)
        ]
        for portion in self._portions([chunk.weights for chunk in chunks]):
            own = [chunks[index] for index in portion]
            encoded = EncodedChunks(own, self.run.tokenizer.size)
            weights = dict(captured_words(self.run.model, encoded, self.run.config.batching))
            rows = [
                QueryRow(numbers[chunk.text], query, chunk.tokens.spans, row)
                for index, chunk in enumerate(own)
                for query, row in zip(chunk.queries, weights.get(index, ()), strict=True)
            ]
            yield ExtractedBatch(items, rows, None)
            items = []  # each item is written once, before its first row
        if items:
            yield ExtractedBatch(items, [], None)

    def _chunks(self, texts: Sequence[Text]) -> list[QueriedChunk]:
        check_length(self.run.config.model, self.chunk_tokens)
        return queried_chunks([text.text for text in texts], self.run.tokenizer, self.chunk_tokens, self.words)

    def _portions(self, head_weights: Sequence[int]) -> list[list[int]]:
        """Divide consecutive items into portions that fit into memory; return the item indices of each portion.

        A portion has at most `self.most_weights` attention weights, or is a single item with more. `head_weights` lists
        the number of attention weights of each item in one head.
        """
        layers, heads = self.shape
        return portions((weights * layers * heads for weights in head_weights), self.most_weights)

    @property
    def shape(self) -> tuple[int, int]:
        """Return the number of layers and the number of heads per layer."""
        return self.run.config.model.layers, heads_of(self.run.config.model.attention)

    def estimate(self, parts: Sequence[Sequence[int]]) -> tuple[int, int]:
        """Estimate, from a sample of items, how many attention rows the parts have, and their size on disk in bytes."""
        numbers = [number for part in parts for number in part]
        sample = list(dict.fromkeys(numbers[index * len(numbers) // _SAMPLE] for index in range(_SAMPLE)))
        items = [self.selection.read([number])[0] for number in sample]
        share = float(self.selection.characters[numbers].sum() / self.selection.characters[sample].sum())
        examples = [item for item in items if isinstance(item, Example)]
        if examples:
            counts = [(1, length) for length in encode(self.run, examples).ids.lengths.tolist()]
        else:
            chunks = self._chunks([item for item in items if isinstance(item, Text)])
            counts = [(len(chunk.queries), len(chunk.tokens.ids)) for chunk in chunks]
        layers, heads = self.shape
        rows = len(numbers) if examples else round(share * sum(queries for queries, _ in counts))
        # Two bytes per weight, four per scale, and about two compressed bytes per token for its span.
        size = sum(queries * (length * (2 * layers * heads + 2) + 4 * layers * heads) for queries, length in counts)
        return rows, round(share * size)

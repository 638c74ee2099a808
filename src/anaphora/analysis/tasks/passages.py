"""Attention rows of many mentions of a text from a single forward pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import torch

from anaphora.analysis.maps.record import AttentionRecord
from anaphora.base.batch import EncoderInput
from anaphora.base.errors import UserError
from anaphora.data.batches.batching import evaluation_batches
from anaphora.data.batches.encoded import EncodedSplit
from anaphora.data.example import Example
from anaphora.data.tokens.tokenizer import Tokenizer
from anaphora.model.encoder import Encoder
from anaphora.model.prediction import group_mean
from anaphora.settings.training import Batching


class Passages:
    """Examples grouped by text, so that each text is encoded once.

    Raises:
        UserError: a mention has no token.
    """

    def __init__(self, examples: Sequence[Example], tokenizer: Tokenizer) -> None:
        self.examples = examples
        by_text: dict[str, list[int]] = {}
        for number, example in enumerate(examples):
            by_text.setdefault(example.text, []).append(number)
        self.items = list(by_text.values())
        self.encoded = EncodedSplit([examples[items[0]] for items in self.items], tokenizer)
        self.mention_positions = [
            [self.encoded.tokens[passage].covering(examples[item].pronoun) for item in items]
            for passage, items in enumerate(self.items)
        ]
        for items, positions in zip(self.items, self.mention_positions, strict=True):
            for item, covered in zip(items, positions, strict=True):
                if not covered:
                    example = examples[item]
                    raise UserError(f"item {item}: no token covers the mention {example.pronoun} of {example.text!r}")

    def __len__(self) -> int:
        return len(self.items)

    def records(
        self, encoder: Encoder, batching: Batching, progress: Callable[[int], object] = lambda _: None
    ) -> Iterator[tuple[int, AttentionRecord]]:
        """Yield the index of each example and the record of its mention's attention, averaged over its tokens.

        Texts come sorted by length. Candidates are never marked in the input, because marks would reveal the mentions.

        Args:
            encoder: the encoder, in evaluation mode.
            batching: settings of the batches.
            progress: callback that receives the number of texts in each batch.

        Raises:
            UserError: the encoder takes the pronoun as a second sequence, so that one pass cannot serve all mentions.
        """
        if encoder.settings.second_sequence:
            raise UserError("model.second_sequence reads one pronoun of a text; here every mention is evaluated")
        device = next(encoder.parameters()).device
        for batch in evaluation_batches(self.encoded, batching, 0):
            length = batch.ids.shape[1]
            starts = batch.item_starts.tolist()
            passages = batch.items.tolist()
            mentions = [
                (start, tokens_of, item)
                for start, passage in zip(starts, passages, strict=True)
                for item, tokens_of in zip(self.items[passage], self.mention_positions[passage], strict=True)
            ]
            flat = torch.tensor([start + token for start, tokens_of, _ in mentions for token in tokens_of])
            owner = torch.tensor([number for number, (_, tokens_of, _) in enumerate(mentions) for _ in tokens_of])
            moved = batch.to(device)
            with torch.inference_mode():
                _, rows = encoder.forward_with_rows(
                    EncoderInput(moved.inputs, moved.positions, moved.segments),
                    ((flat // length).to(device), (flat % length).to(device)),
                    needed=torch.unique(flat).to(device),
                )
                means = group_mean(rows.transpose(0, 1), owner.to(device), len(mentions)).float().cpu().numpy()
            passage_of = [passage for passage in passages for _ in self.items[passage]]
            for number, ((start, _, item), passage) in enumerate(zip(mentions, passage_of, strict=True)):
                tokens = self.encoded.tokens[passage]
                first = start % length
                row = means[number, :, :, first : first + len(tokens.ids)]
                yield item, AttentionRecord.of(self.examples[item], tokens, row)
            progress(len(passages))

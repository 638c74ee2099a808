"""The attention rows of many mentions of one text, read in a single pass over the text."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import torch

from anaphora.analysis.record import AttentionRecord
from anaphora.data.batch import Encoded, evaluation_batches
from anaphora.data.example import Example
from anaphora.data.settings import Batching
from anaphora.data.tokenizer import Tokenizer
from anaphora.errors import UserError
from anaphora.model.encoder import Encoder
from anaphora.model.readout import group_mean


class Passages:
    """Examples whose texts are encoded once each, however many of them share a text.

    Raises:
        UserError: no token covers a mention.
    """

    def __init__(self, examples: Sequence[Example], tokenizer: Tokenizer) -> None:
        self.examples = examples
        by_text: dict[str, list[int]] = {}
        for number, example in enumerate(examples):
            by_text.setdefault(example.text, []).append(number)
        self.items = list(by_text.values())
        self.encoded = Encoded([examples[items[0]] for items in self.items], tokenizer)
        self.places = [
            [self.encoded.tokens[passage].covering(examples[item].pronoun) for item in items]
            for passage, items in enumerate(self.items)
        ]
        for items, places in zip(self.items, self.places, strict=True):
            for item, covered in zip(items, places, strict=True):
                if not covered:
                    example = examples[item]
                    raise UserError(f"item {item}: no token covers the mention {example.pronoun} of {example.text!r}")

    def __len__(self) -> int:
        return len(self.items)

    def records(
        self, encoder: Encoder, batching: Batching, progress: Callable[[int], object] = lambda _: None
    ) -> Iterator[tuple[int, AttentionRecord]]:
        """The number of each example and its mention's rows of every layer and head; texts sorted by length.

        No candidate is marked, whatever the read-out of the model: marks would tell where the mentions are.

        Args:
            encoder: in evaluation mode.
            batching: how texts share a pass.
            progress: is told how many texts each pass has read.

        Raises:
            UserError: the encoder takes what is asked about out of the text: one pass cannot do so for all.
        """
        if encoder.settings.second_sequence:
            raise UserError("model.second_sequence asks one pronoun of a text, and here every mention is asked")
        device = next(encoder.parameters()).device
        for batch in evaluation_batches(self.encoded, batching, 0):
            length = batch.ids.shape[1]
            starts = ((batch.places == 0) & (batch.segments >= 0)).flatten().nonzero().squeeze(1).tolist()
            passages = batch.items.tolist()
            asked = [
                (start, places, item)
                for start, passage in zip(starts, passages, strict=True)
                for item, places in zip(self.items[passage], self.places[passage], strict=True)
            ]
            flat = torch.tensor([start + place for start, places, _ in asked for place in places])
            owner = torch.tensor([number for number, (_, places, _) in enumerate(asked) for _ in places])
            moved = batch.to(device)
            with torch.inference_mode():
                _, rows = encoder.with_rows(
                    moved.inputs,
                    moved.places,
                    moved.segments,
                    ((flat // length).to(device), (flat % length).to(device)),
                    needed=torch.unique(flat).to(device),
                )
                means = group_mean(rows.transpose(0, 1), owner.to(device), len(asked)).float().cpu().numpy()
            passage_of = [passage for passage in passages for _ in self.items[passage]]
            for number, ((start, _, item), passage) in enumerate(zip(asked, passage_of, strict=True)):
                tokens = self.encoded.tokens[passage]
                first = start % length
                row = means[number, :, :, first : first + len(tokens.ids)]
                yield item, AttentionRecord(self.examples[item], tokens.spans, tokens.words, row)
            progress(len(passages))

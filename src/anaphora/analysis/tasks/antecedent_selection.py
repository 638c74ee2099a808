"""Accuracy of attention heads as antecedent selectors, after Clark et al. 2019, section 4.3.

A head chooses the word of a choice set (such as all words, or the head words of all earlier mentions) to which the
mention's head word attends most. It is right if this word is an antecedent's head word. Weights are summed over a
word's subwords as keys and averaged over them as queries. Special tokens and the mention itself are excluded. Axes are
N (items), F (choice sets), L (layers) and H (heads).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from anaphora.analysis.maps.record import AttentionRecord
from anaphora.analysis.maps.words import word_weights
from anaphora.analysis.results.scores import Head
from anaphora.analysis.results.typed_json import Ends
from anaphora.analysis.scores.cells import bootstrap_interval, rounded
from anaphora.analysis.scores.heads import TIE
from anaphora.analysis.tasks.antecedent_rules import RULES, rule_hits
from anaphora.base.batch import EncoderInput
from anaphora.base.errors import UserError
from anaphora.base.translation import N_
from anaphora.data.batches.batching import evaluation_batches
from anaphora.data.batches.encoded import EncodedSplit
from anaphora.data.corpora.word_classes import FORMS
from anaphora.data.example import Example, Span, overlap
from anaphora.data.grouping import indices_by
from anaphora.data.tokens.tokenizer import Tokenizer
from anaphora.model.encoder import Encoder
from anaphora.model.prediction import group_mean
from anaphora.settings.training import Batching

NO_SEPARATE_ANTECEDENT = N_("no antecedent in a token of its own before the mention")
CHOICE_SETS = ("words", "preceding", "mentions")
"""Names of the choice sets, the words among which a head's argmax is taken: all words of the text (as in Clark et al.),
the words before the mention, or the head words of earlier mentions (among which rules choose, too)."""
FORM_COLUMNS = ("all", *FORMS)

Hits = NDArray[np.float32]


def form_of(example: Example) -> str:
    """Return the form of an example's mention, such as "pronoun": one of `FORMS`, from the factor `form`."""
    form = example.factors.get("form", "")
    return form if form in FORMS else "pronoun"


def has_preceding_antecedent(example: Example) -> bool:
    """Return whether an antecedent precedes the mention."""
    return any(example.candidates[index][0] < example.pronoun for index in example.antecedents)


def selection_hits(record: AttentionRecord) -> Hits | None:
    """Return, for each choice set and head, 1 if the word with the largest weight is right, else 0: (F, L, H).

    A word is right if it overlaps an antecedent's head word; in a tie (`TIE`), the value is the share of tied words
    that are right. A head without weights gets 0; values are NaN in layers without attention. The result is None if no
    word before the mention is right, for example because the antecedent shares a token with the mention.
    """
    row, example = word_weights(record), record.example
    pronoun = example.pronoun
    text = [start < end for start, end in row.spans]
    other = np.array([written and not overlap(span, pronoun) for span, written in zip(row.spans, text, strict=True)])
    before = other & np.array([end <= pronoun[0] for _, end in row.spans])
    mentioned = _overlapping_any(row.spans, example.spans[1:])
    right = _overlapping_any(row.spans, [span for index in example.antecedents for span in example.candidates[index]])
    if not (right & before).any():
        return None
    hits = np.zeros((len(CHOICE_SETS), *row.weights.shape[:2]), dtype=np.float32)
    for number, allowed in enumerate((other, before, before & mentioned)):
        within = row.weights[:, :, allowed]
        heaviest = within >= within.max(axis=2, keepdims=True) * np.float32(1 - TIE)
        hits[number] = (heaviest & right[allowed]).sum(axis=2) / heaviest.sum(axis=2)
    hits *= record.weights.any(axis=2)  # a head without weights has no argmax
    hits[:, ~record.weights.any(axis=(1, 2))] = np.nan
    return hits


def _overlapping_any(words: Sequence[Span], spans: Sequence[Span]) -> NDArray[np.bool_]:
    return np.array([any(overlap(word, span) for span in spans) for word in words], dtype=np.bool_)


@dataclass(frozen=True, eq=False)
class Selections:
    """Correctness of every head as an antecedent selector on the N examples of a split that can be evaluated.

    The axes of `hits` are item, choice set (`CHOICE_SETS`), layer and head, (N, F, L, H). Values are from 0 to 1, and
    NaN in layers without attention. An example can be evaluated if `selection_hits` is not None.
    """

    examples: Sequence[Example]
    hits: Hits

    def items(self, column: str) -> NDArray[np.int64]:
        """Return the indices of the items whose mention has the form `column`, or of all items if `column` is "all"."""
        return np.flatnonzero([column in ("all", form_of(example)) for example in self.examples])

    def accuracy(self, field: str, column: str) -> NDArray[np.float64]:
        """Return every head's accuracy, (L, H), for one choice set and one form of mention.

        It is NaN in layers without attention, and in all layers if there are no such mentions.

        Args:
            field: choice set, one of `CHOICE_SETS`.
            column: form of the mentions, one of `FORM_COLUMNS`; "all" for every form.
        """
        hits = self.hits[self.items(column), CHOICE_SETS.index(field)]
        return np.asarray(hits.mean(axis=0, dtype=np.float64))

    def best(self, field: str, column: str) -> Head:
        """Return the head with the highest accuracy for one choice set (`field`) and one form of mention (`column`).

        Ties go to the lowest layer, then to the lowest head.

        Raises:
            ValueError: there are no mentions of this form, or no layer has attention.
        """
        accuracy = self.accuracy(field, column)
        layer, head = np.unravel_index(np.nanargmax(accuracy), accuracy.shape)
        return Head(int(layer), int(head))

    def head_hits(self, head: Head, field: str) -> NDArray[np.float64]:
        """Return the correctness of one head on each item, (N,), in one choice set (`field`, one of `CHOICE_SETS`)."""
        return self.hits[:, CHOICE_SETS.index(field), head.layer, head.head].astype(np.float64)


def collect_selections(examples: Sequence[Example], records: Iterable[tuple[int, AttentionRecord]]) -> Selections:
    """Compute the correctness of every head as an antecedent selector from the examples' attention records.

    Each record comes with the index of its example, in any order. Examples for which `selection_hits` is None are
    dropped.

    Raises:
        UserError: no example is left.
    """
    by_number = {number: hits for number, record in records if (hits := selection_hits(record)) is not None}
    if not by_number:
        raise UserError(f"all mentions of the split ({len(examples)}) are left out: {NO_SEPARATE_ANTECEDENT}")
    kept = sorted(by_number)
    return Selections([examples[number] for number in kept], np.stack([by_number[number] for number in kept]))


@dataclass(frozen=True, kw_only=True)
class SelectorAccuracy:
    """Accuracy of an antecedent selector (a rule or a head), with 95 % bootstrap intervals over documents.

    The accuracy of the selector "untrained" is a mean over untrained models. Each of these models uses the head that is
    most accurate on development mentions of the same form.
    """

    subset: str  # "all", or "factor=value"
    selector: str  # name of a rule; "best head" for the form of mention; "one head" for all forms; or "untrained"
    field: str  # choice set, one of `CHOICE_SETS`; "mentions" for rules
    column: str  # form of the mentions, one of `FORM_COLUMNS`
    items: int
    documents: int
    layer: int | None  # None, like `head`, for rules and untrained models
    head: int | None
    development: float | None  # the head's accuracy on the development items with this form of mention
    accuracy: float | None
    interval: Ends
    over_nearest: float | None  # accuracy minus that of the rule "nearest" on the same items
    over_nearest_interval: Ends


@dataclass(frozen=True, kw_only=True)
class HeadSelection:
    """Accuracy of one head as an antecedent selector on a split."""

    split: str
    field: str
    column: str
    layer: int
    head: int
    accuracy: float | None


def selection_table(
    development: Selections, measured: Selections, untrained: Sequence[tuple[Selections, Selections]], by: Sequence[str]
) -> list[SelectorAccuracy]:
    """Return the accuracy of every rule and every chosen head on the evaluated split.

    Args:
        development: correctness of every head on the development split, on which heads are chosen.
        measured: correctness of every head on the evaluated split.
        untrained: the same on both splits for each untrained model.
        by: names of factors (properties of items). For each value of a factor, additional rows give the accuracy on the
            evaluated items with this value. Heads are chosen on development items regardless of this value.

    Returns:
        One row for each subset of items, selector (rule or head), choice set (words from which it chooses) and form of
        mention (such as "pronoun"). Forms without items are left out; heads have no rows for forms without development
        items.

    Raises:
        ValueError: no candidate precedes the mention of an evaluated item.
    """
    rules = [rule_hits(example) for example in measured.examples]
    by_rule = {name: np.array([one[name] for one in rules], dtype=np.float64) for name in RULES}
    rows: list[SelectorAccuracy] = []
    for subset, kept in _subsets(measured.examples, by):
        for column in FORM_COLUMNS:
            items = np.intersect1d(measured.items(column), kept)
            if not len(items):
                continue
            row = _row_maker(measured.examples, items, by_rule["nearest"], subset=subset, column=column)
            rows += [row(name, "mentions", values) for name, values in by_rule.items()]
            known = development.items(column)
            for field in CHOICE_SETS:
                for selector, chosen_for in (("best head", column), ("one head", "all")):
                    if len(known):
                        head = development.best(field, chosen_for)
                        share = float(development.head_hits(head, field)[known].mean())
                        rows.append(row(selector, field, measured.head_hits(head, field), head, share))
                if len(known) and untrained:
                    chance = [test.head_hits(dev.best(field, column), field) for dev, test in untrained]
                    rows.append(row("untrained", field, np.mean(chance, axis=0)))
    return rows


def _subsets(examples: Sequence[Example], by: Sequence[str]) -> list[tuple[str, NDArray[np.int64]]]:
    subsets = [("all", np.arange(len(examples)))]
    for name in by:
        by_value = indices_by(example.factors.get(name, "") for example in examples)
        subsets += [(f"{name}={value}", np.array(items)) for value, items in sorted(by_value.items())]
    return subsets


def _row_maker(
    examples: Sequence[Example], items: NDArray[np.int64], nearest: NDArray[np.float64], **names: str
) -> Callable[..., SelectorAccuracy]:
    documents = [("document", examples[item].group or examples[item].text) for item in items]

    def row(
        selector: str,
        field: str,
        values: NDArray[np.float64],
        head: Head | None = None,
        development: float | None = None,
    ) -> SelectorAccuracy:
        mine, above = values[items], values[items] - nearest[items]
        return SelectorAccuracy(
            **names,
            selector=selector,
            field=field,
            items=len(items),
            documents=len(set(documents)),
            layer=None if head is None else head.layer,
            head=None if head is None else head.head,
            development=rounded(development),
            accuracy=rounded(mine.mean()),
            interval=bootstrap_interval(mine, documents, (0, 1)),
            over_nearest=rounded(above.mean()),
            over_nearest_interval=bootstrap_interval(above, documents),
        )

    return row


def heads_table(selections: Selections, split: str) -> list[HeadSelection]:
    """Return the accuracy of every head as an antecedent selector, for each choice set and form of mention that occurs.

    Layers without attention are left out.
    """
    return [
        HeadSelection(split=split, field=field, column=column, layer=layer, head=head, accuracy=rounded(float(value)))
        for field in CHOICE_SETS
        for column in FORM_COLUMNS
        if len(selections.items(column))
        for (layer, head), value in np.ndenumerate(selections.accuracy(field, column))
        if not np.isnan(value)
    ]


class Passages:
    """Examples grouped by text, so that one forward pass per text serves all its mentions.

    Raises:
        UserError: no token covers a mention.
    """

    def __init__(self, examples: Sequence[Example], tokenizer: Tokenizer) -> None:
        self.examples = examples
        self.items = list(indices_by(example.text for example in examples).values())
        self.encoded = EncodedSplit([examples[items[0]] for items in self.items], tokenizer)
        self.mention_positions = {
            item: tokens.covering(examples[item].pronoun)
            for items, tokens in zip(self.items, self.encoded.tokens, strict=True)
            for item in items
        }
        for item, covered in self.mention_positions.items():
            if not covered:
                example = examples[item]
                raise UserError(f"item {item}: no token covers the mention {example.pronoun} of {example.text!r}")

    def __len__(self) -> int:
        return len(self.items)

    def records(
        self, encoder: Encoder, batching: Batching, progress: Callable[[int], object] = lambda _: None
    ) -> Iterator[tuple[int, AttentionRecord]]:
        """Yield the index of each example and the attention rows of its mention, averaged over the mention's tokens.

        After each batch, `progress` is called with its number of texts. Candidates are never marked in the model's
        input, because such marks would reveal the mentions.

        Raises:
            UserError: the encoder has no attention maps; or it takes the pronoun as a second input sequence, so that
                each mention would need its own forward pass.
        """
        if encoder.settings.second_sequence:
            raise UserError("model.second_sequence reads one pronoun of a text; here every mention is evaluated")
        device = next(encoder.parameters()).device
        for batch in evaluation_batches(self.encoded, batching, 0):
            passages = batch.items.tolist()
            mentions = [
                (start, passage, item, self.mention_positions[item])
                for start, passage in zip(batch.item_starts.tolist(), passages, strict=True)
                for item in self.items[passage]
            ]
            flat = torch.tensor([start + token for start, _, _, own in mentions for token in own], device=device)
            owner = torch.tensor([number for number, (*_, own) in enumerate(mentions) for _ in own], device=device)
            batch = batch.to(device)
            texts = EncoderInput(batch.inputs, batch.positions, batch.segments)
            with torch.inference_mode():
                _, rows = encoder.forward_with_rows(texts, batch.row_and_token(flat), torch.unique(flat))
                means = group_mean(rows.transpose(0, 1), owner, len(mentions)).float().cpu().numpy()
            for (start, passage, item, _), rows_of_mention in zip(mentions, means, strict=True):
                tokens, first = self.encoded.tokens[passage], start % batch.ids.shape[1]
                row = rows_of_mention[:, :, first : first + len(tokens.ids)]
                yield item, AttentionRecord.of(self.examples[item], tokens, row)
            progress(len(passages))

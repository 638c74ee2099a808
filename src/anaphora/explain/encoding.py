"""A trained run step by step: one head of one layer on one sentence, with the block around it, in float64.

T tokens, W width, D features a head. Every number is what the run's own encoder computes, step by step.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn

from anaphora.base.batch import Batch, EncoderInput
from anaphora.base.errors import UserError
from anaphora.base.special_tokens import UNKNOWN
from anaphora.data.batches.batching import encode_plain_text, single_batch
from anaphora.data.example import Example
from anaphora.data.own_sentence import find_span
from anaphora.data.tokens.tokenizer import TokenizedText, Tokenizer
from anaphora.explain.calculation import (
    MatrixLabels,
    all_heads_steps,
    attention_steps,
    labelled_matrix,
    output_projection_step,
    projection_step,
)
from anaphora.explain.matrices import MAX_TOKENS, row_index
from anaphora.explain.phrases import Phrases
from anaphora.explain.walk import Matrix, Step, Walkthrough
from anaphora.model.attention import Attention, attend, masked_softmax
from anaphora.model.block import Block
from anaphora.model.encoder import Encoder
from anaphora.model.layers import LayerPass
from anaphora.model.mixer import AttentionContext
from anaphora.model.pronoun_model import PronounModel
from anaphora.model.recurrent import NO_MAPS
from anaphora.runs.directory import Run
from anaphora.settings.data import ControlledCorpus
from anaphora.settings.model.encoder import check_length
from anaphora.settings.model.prediction import NoPrediction, reads_candidates, slots_of
from anaphora.settings.vocabulary import WordVocabulary


@dataclass(frozen=True)
class SentenceQuery:
    """A text, and where it has one, its pronoun with candidates."""

    text: str
    example: Example | None = None


@dataclass(frozen=True)
class _EncodedSentence:
    """A text as the encoder reads it, a single row; the batch where the query names a pronoun, and the tokens."""

    row: EncoderInput
    batch: Batch | None
    tokens: TokenizedText


def walk_through_run(
    run: Run, query: SentenceQuery, layer: int, head: int, row: str | None, words: Phrases
) -> Walkthrough:
    """The walk-through of one head of a trained run.

    Args:
        row: the token that is followed, a word or a number; by default the pronoun, else the last word.

    Raises:
        UserError: there is no such layer, head or row, the model has no attention, or the text is empty or too long.
    """
    if not run.model.encoder.has_maps:
        kind = run.config.model.attention.kind
        raise UserError(f"run {run.name} has no attention to walk through (model.attention={kind})")
    model = copy.deepcopy(run.model).cpu().double()  # one sentence, to all its digits
    blocks = [block for block in model.encoder.blocks if isinstance(block, Block)]
    heads = blocks[0].attention.heads
    for name, value, count in (("layer", layer, len(blocks)), ("head", head, heads)):
        if not 0 <= value < count:
            raise UserError(f"{name} ({value}) must be from 0 to {count - 1} in run {run.name}")
    with torch.inference_mode():
        sentence = _encode(run, model, query)
        labels = token_labels(query.text, sentence.tokens, run.tokenizer)
        position = _followed_position(row, query, sentence.tokens, labels)
        answers = not isinstance(run.config.task.prediction, NoPrediction)
        steps, answer = _steps(model, blocks, sentence, query, labels, layer, head, answers, words)
    about = words("run", "about", run=run.name, layers=len(blocks), heads=heads, width=run.config.model.width)
    if answer is not None:
        about = words.joined(about, words("run", "answer", answer=answer))
    notes = _unknown_word_notes(sentence.tokens, labels, words)
    whole_words = isinstance(run.config.data, ControlledCorpus) and isinstance(run.config.vocabulary, WordVocabulary)
    if query.example is not None and whole_words:
        notes += _character_notes(sentence.tokens, labels, query.example, words)
    if reads_candidates(run.config.task.prediction):
        notes += (words("run", "compared"),)
    title = words("run", "title", layer=layer, head=head, text=query.text)
    units = _units(query, sentence.tokens, labels)
    return Walkthrough("sentence", title, about, words.language, labels, position, tuple(steps), notes, units)


def _units(
    query: SentenceQuery, tokens: TokenizedText, labels: tuple[str, ...]
) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """The words of the text, and each mention of a candidate as one, with the numbers of their tokens."""
    mentions = [mention for candidate in query.example.candidates for mention in candidate] if query.example else []
    mention_of = {token: number for number, mention in enumerate(mentions) for token in tokens.covering(mention)}
    units: dict[tuple[str, int], list[int]] = {}
    for token, word in enumerate(tokens.words):
        unit = (
            ("mention", mention_of[token]) if token in mention_of else ("word", word) if word >= 0 else ("token", token)
        )
        units.setdefault(unit, []).append(token)
    return tuple(
        (
            labels[members[0]]
            if len(members) == 1
            else query.text[tokens.spans[members[0]][0] : tokens.spans[members[-1]][1]],
            tuple(members),
        )
        for members in units.values()
    )


def _unknown_word_notes(tokens: TokenizedText, labels: tuple[str, ...], words: Phrases) -> tuple[str, ...]:
    """A note on the words that the model's vocabulary does not have, and one on those that it splits."""
    unknown = [labels[position] for position, token in enumerate(tokens.ids) if token == UNKNOWN]
    subwords: dict[int, list[str]] = {}
    for number, label in zip(tokens.words, labels, strict=True):
        if number >= 0:
            subwords.setdefault(number, []).append(label)
    split = ["·".join(parts) for parts in subwords.values() if len(parts) > 1]
    lists = (("unknown", unknown), ("subwords", split))
    return tuple(words("run", name, words=", ".join(dict.fromkeys(listed))) for name, listed in lists if listed)


def _character_notes(
    tokens: TokenizedText, labels: tuple[str, ...], example: Example, words: Phrases
) -> tuple[str, ...]:
    """A note on the candidates that a model reads one character at a time, although it learned names as whole words.

    Every Chinese token counts as a word, so in a text without blanks only the candidates tell what belongs together.
    """
    mentions = [mention for candidate in example.candidates for mention in candidate]
    names = [[labels[position] for position in tokens.covering(mention)] for mention in mentions]
    split = ["·".join(parts) for parts in names if len(parts) > 1 and all(len(part) == 1 for part in parts)]
    return (words("run", "characters", words=", ".join(dict.fromkeys(split))),) if split else ()


def token_labels(text: str, tokens: TokenizedText, tokenizer: Tokenizer) -> tuple[str, ...]:
    """Every token as the text writes it; a special one, which stands for no text, as the tokenizer writes it."""
    return tuple(
        text[start:end] if start < end else tokenizer.token(token)
        for token, (start, end) in zip(tokens.ids, tokens.spans, strict=True)
    )


def _encode(run: Run, model: PronounModel, query: SentenceQuery) -> _EncodedSentence:
    if query.example is not None:
        batch, tokens = single_batch(query.example, run.tokenizer, slots_of(run.config.task.prediction))
        sentence = _EncodedSentence(model.encoder_input(batch), batch, tokens)
    else:
        model.check_without_query()
        row, tokens = encode_plain_text(query.text, run.tokenizer)
        sentence = _EncodedSentence(row, None, tokens)
    count = len(tokens.ids)
    if not any(start < end for start, end in tokens.spans):
        raise UserError(f"text ({query.text!r}) has no word")
    if count > MAX_TOKENS:
        raise UserError(f"text has {count} tokens; at most {MAX_TOKENS} can be shown")
    check_length(run.config.model, count)
    return sentence


def _followed_position(row: str | None, query: SentenceQuery, tokens: TokenizedText, labels: tuple[str, ...]) -> int:
    if row is not None:
        if row.isdecimal() or row.lower() in (label.lower() for label in labels):
            return row_index(row, labels)
        start, end = find_span(query.text, row, "row")
        if any(map(str.isspace, query.text[start:end])):
            raise UserError(f"row ({row!r}) has several words; the steps follow one token, so name one word")
        return tokens.covering((start, end))[0]  # of a word that the model splits, its first subword
    if query.example is not None:
        return tokens.covering(query.example.pronoun)[0]
    visible = [position for position, (start, end) in enumerate(tokens.spans) if start < end]  # [SEP] is no word
    with_letters = [position for position in visible if any(map(str.isalnum, labels[position]))]
    return (with_letters or visible)[-1]


def _steps(
    model: PronounModel,
    blocks: Sequence[Block],
    sentence: _EncodedSentence,
    query: SentenceQuery,
    labels: tuple[str, ...],
    layer: int,
    head: int,
    answers: bool,
    words: Phrases,
) -> tuple[list[Step], str | None]:
    """All steps in order, and the model's answer, or None where the query names no candidates."""
    encoder = model.encoder
    context = encoder.make_context(sentence.row)
    steps = _embedding_steps(encoder, sentence.row, context.embeddings, labels, words)
    hidden = context.embeddings
    for lower in blocks[:layer]:
        hidden = LayerPass(lower, context, hidden).output()
    if layer:
        parts = (steps[-1].result, words("signs", "layers"), "=", _token_matrix("X", hidden, labels))
        steps.append(Step("before", words("before", "title"), words("before", "text", layer=layer), parts))
    of_block = _BlockSteps(blocks[layer], labels, words)
    summed, mixed = of_block.add_attention(hidden, context, head)
    hidden = of_block.add_feed_forward(hidden, mixed, summed, layer)
    steps += of_block.steps
    current = steps[-1].result
    for upper in blocks[layer + 1 :]:
        hidden = LayerPass(upper, context, hidden).output()
    final = encoder.norm(hidden)
    layers_left = len(blocks) - layer - 1
    normed = not isinstance(encoder.norm, nn.Identity)
    text = words("after", "text", layers=layers_left)
    if layers_left or normed:
        if normed:
            text = words.joined(text, words("after", "normed")) if layers_left else words("after", "normed")
        signs = [words("signs", "layers")] * bool(layers_left) + [words("signs", "norm")] * normed
        steps.append(
            Step("after", words("after", "title"), text, (current, *signs, "=", _token_matrix("H", final, labels)))
        )
    if not answers or query.example is None or not query.example.candidates:
        return steps, None
    assert sentence.batch is not None
    step = _answer(model, sentence.batch, query.example, words)
    best = int(step.result.values[0].argmax())
    return [*steps, step], step.result.columns[best]


def _token_matrix(name: str, values: Tensor, labels: tuple[str, ...]) -> Matrix:
    """(1, T, W) as a matrix whose rows are the tokens."""
    return labelled_matrix(name, values[0], labels)


def _embedding_steps(
    encoder: Encoder, tokens: EncoderInput, embedded: Tensor, labels: tuple[str, ...], words: Phrases
) -> list[Step]:
    """From tokens to what the first block reads, `embedded` (1, T, W), with the norm where the encoder has one here."""
    text, vectors = words("embedding", "text", features=embedded.shape[-1]), encoder.token_embeddings(tokens.ids)
    if encoder.position.scale != 1:
        text = words.joined(text, words("embedding", "scaled", scale=f"{encoder.position.scale:.4g}"))
    if tokens.marks is not None:
        text, vectors = words.joined(text, words("embedding", "marked")), vectors + tokens.marks
    summed = encoder.position.embed(vectors, tokens.positions)
    normed = not isinstance(encoder.embedding_norm, nn.Identity)
    parts: tuple[Matrix | str, ...] = (_token_matrix("X′" if normed else "X", summed, labels),)
    if bool((summed - vectors).any()):
        positions = _token_matrix("P", summed - vectors, labels)
        text, parts = (
            words.joined(text, words("embedding", "added")),
            (_token_matrix("E", vectors, labels), "+", positions, "=", *parts),
        )
    steps = [Step("embedding", words("embedding", "title"), text, parts)]
    if normed:
        parts = (steps[0].result, words("signs", "norm"), "=", _token_matrix("X", embedded, labels))
        steps.append(Step("embedding_norm", words("embedding_norm", "title"), words("embedding_norm", "text"), parts))
    return steps


class _BlockSteps:
    """The steps of one block, in the order in which they are added: its attention, then its feed-forward network."""

    def __init__(self, block: Block, labels: tuple[str, ...], words: Phrases) -> None:
        self.block, self.labels, self.words = block, labels, words
        self.steps: list[Step] = []

    def _add(self, name: str, *parts: Matrix | str, **values: object) -> Matrix:
        title_values = values if name in ("second_residual", "last_norm") else {}
        title = self.words(name, "title", **title_values)
        self.steps.append(Step(name, title, self.words(name, "text", **values), parts))
        return self.steps[-1].result

    def _tokens(self, name: str, values: Tensor) -> Matrix:
        return _token_matrix(name, values, self.labels)

    def add_attention(self, hidden: Tensor, context: AttentionContext, head: int) -> tuple[Matrix, Tensor]:
        """The steps from the block's input to the sum with what attention gives.

        Returns:
            The sum, and what the heads mix, side by side: (1, T, W).

        Raises:
            UserError: the block has no attention.
        """
        block, words, labels = self.block, self.words, self.labels
        attention = block.attention
        if not isinstance(attention, Attention):
            raise UserError(NO_MAPS)
        start = self._tokens("X", hidden)
        norm = words("signs", "norm")
        read, content = block.attention_inputs(hidden, context)
        normed = self._add("norm", start, norm, "=", self._tokens("N", read)) if block.is_pre_norm else start
        value_source = normed
        if block.value_norm is not None:
            value_source = self._add(
                "content", self._tokens("E", context.embeddings), norm, "=", self._tokens("C", content)
            )
        unrotated = attention.unrotated(read, content)
        query, key, value = attention.project(read, content, context)
        sources = (normed, normed, value_source)
        for name, letter, source, vectors in zip(
            ("queries", "keys", "values"), ("Q", "K", "V"), sources, unrotated, strict=True
        ):
            weight, projection_bias = _head_weights(attention, {"Q": "query", "K": "key", "V": "value"}[letter], head)
            self.steps.append(projection_step(words, name, letter, source, weight, projection_bias, vectors[0, head]))
        if not torch.equal(query, unrotated[0]):
            sign = words("signs", "turn")
            before, after = ([self._tokens(n, t[:, head]) for n, t in zip("QK", ts, strict=True)]
                             for ts in ((unrotated[0], unrotated[1]), (query, key)))  # fmt: skip
            self._add("turn", before[0], sign, "=", after[0], before[1], sign, "=", after[1])
        bias = attention.score_bias(context)
        matrix_labels = MatrixLabels(labels, labels)
        self.steps += attention_steps(words, matrix_labels, query, key, value, bias, head, attention.scale is None)
        mixed = attention.mix(query, key, value, context)
        if attention.heads > 1:
            weights = attention.maps(query, key, context)
            outputs = attend(query, key, value, bias, scale=attention.scale)
            self.steps += all_heads_steps(words, matrix_labels, weights, outputs, head)
        update = attention.finish(mixed)
        update_matrix = labelled_matrix("M", mixed[0], labels)
        output = cast("nn.Linear | None", getattr(attention, "output", None))
        if output is not None:
            self.steps.append(
                output_projection_step(words, matrix_labels, mixed[0], output.weight.T, output.bias, update[0])
            )
            update_matrix = self.steps[-1].result
        return self._add("residual", start, "+", update_matrix, "=", self._tokens("Z", hidden + update)), mixed

    def add_feed_forward(self, hidden: Tensor, mixed: Tensor, summed: Matrix, layer: int) -> Tensor:
        """The steps from the sum after attention to the block's output, which is given back: (1, T, W).

        Args:
            hidden: (1, T, W) the block's input.
            mixed, summed: as `add_attention` gave them.
            layer: the block's number.
        """
        block = self.block
        norm = self.words("signs", "norm")
        half = block.add_attention(hidden, mixed)
        if block.is_pre_norm:
            ff_input = block.feed_forward_norm(half)
            ff_input_matrix = self._add("second_norm", summed, norm, "=", self._tokens("N", ff_input))
        else:
            ff_input = half
            ff_input_matrix = summed = self._add("first_norm", summed, norm, "=", self._tokens("N", half))
        inside = block.feed_forward.inside(ff_input)
        ff_output = block.feed_forward(ff_input)
        widen, narrow = (self.words("signs", name) for name in ("widen", "narrow"))
        parts = (ff_input_matrix, widen, "=", self._tokens("F", inside), narrow, "=")
        ff_output_matrix = self._add(
            "feed_forward",
            *parts,
            self._tokens("G", ff_output),
            inside=inside.shape[-1],
            features=ff_output.shape[-1],
        )
        output_states = block.complete(hidden, mixed)
        layer_output = self._tokens("X′", output_states)
        if block.is_pre_norm:
            self._add("second_residual", summed, "+", ff_output_matrix, "=", layer_output, layer=layer)
        else:
            second_sum = self._tokens("Z′", half + ff_output)
            second_sum = self._add("second_residual", summed, "+", ff_output_matrix, "=", second_sum, layer=layer)
            self._add("last_norm", second_sum, norm, "=", layer_output, layer=layer)
        return output_states


def _head_weights(attention: Attention, name: str, head: int) -> tuple[Tensor | None, Tensor | None]:
    """A projection's share of one head: (W, D) and (D,), or None for what this kind of attention does not have."""
    linear = getattr(attention, name, None)
    if not isinstance(linear, nn.Linear):
        return None, None
    size = linear.out_features // attention.heads
    rows = slice(head * size, (head + 1) * size)
    return linear.weight[rows].T, None if linear.bias is None else linear.bias[rows]


def _answer(model: PronounModel, batch: Batch, example: Example, words: Phrases) -> Step:
    scores = model.prediction_head.scores(model(batch), batch)
    names = [example.words(index) for index in range(len(example.candidates))]
    answers = scores[:, : len(names)]
    if bool(scores[0, -1].isfinite()):
        answers = torch.cat((answers, scores[:, -1:]), dim=1)
        names.append(words("labels", "none_of_them"))
    row = labelled_matrix(words("labels", "score"), answers, ("",), names, ("one", "tokens"), followed=False)
    share = labelled_matrix(
        words("labels", "share"), masked_softmax(answers), ("",), names, ("one", "tokens"), False, True
    )
    return Step("answer", words("answer", "title"), words("answer", "text"), (row, "softmax", "=", share))

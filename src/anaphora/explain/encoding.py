"""A trained run step by step: one head of one layer on one sentence, with the block around it, in float64.

T tokens, W width, D features a head. Every number is what the run's own encoder computes, step by step.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from anaphora.base.batch import Batch, EncoderInput
from anaphora.base.errors import UserError
from anaphora.base.locale.translation import _, spoken_language
from anaphora.base.special_tokens import UNKNOWN
from anaphora.data.batches.batching import encode_plain_text, single_batch
from anaphora.data.example import Example
from anaphora.data.own_sentence import find_span, last_pronoun
from anaphora.data.tokens.tokenizer import TokenizedText, Tokenizer
from anaphora.explain.block import BlockSteps, token_matrix
from anaphora.explain.matrices import MAX_TOKENS, row_index
from anaphora.explain.steps import labelled_matrix
from anaphora.explain.walk import Matrix, Step, Walkthrough
from anaphora.model.attention import masked_softmax
from anaphora.model.block import Block
from anaphora.model.encoder import Encoder
from anaphora.model.layers import LayerPass
from anaphora.model.pronoun_model import PronounModel
from anaphora.report.page.answer_notes import pronoun_note
from anaphora.report.wording import joined_sentences
from anaphora.runs.directory import Run
from anaphora.settings.data import ControlledCorpus
from anaphora.settings.model.encoder import check_length
from anaphora.settings.model.prediction import NoPrediction, reads_candidates, slots_of
from anaphora.settings.vocabulary import WordVocabulary


@dataclass(frozen=True)
class SentenceQuery:
    """A text with its pronoun and candidates.

    Attributes:
        text: the text.
        example: its pronoun and candidates; None if it has no pronoun.
        is_found: whether nobody named the pronoun, so that it was found in the text.
    """

    text: str
    example: Example | None = None
    is_found: bool = False


@dataclass(frozen=True)
class _EncodedSentence:
    """A text as the encoder reads it, a single row; the batch where the query names a pronoun, and the tokens."""

    row: EncoderInput
    batch: Batch | None
    tokens: TokenizedText


def walk_through_run(run: Run, query: SentenceQuery, layer: int, head: int, row: str | None) -> Walkthrough:
    """The walk-through of one head of a trained run, in the language of the enclosing `spoken_in`.

    Args:
        row: the token that is followed, a word or a number; by default the pronoun.

    Raises:
        UserError: there is no such layer, head or row, the model has no attention, the text is empty or too long, or
            it has no pronoun and no row is given.
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
        steps, answer = _steps(model, blocks, sentence, query, labels, layer, head, answers)
    about = _(
        "Run {run}: {layers} layers, heads in each: {heads}, features a token: {width}. All numbers are the encoder's "
        "own, in 64-bit arithmetic."
    ).format(run=run.name, layers=len(blocks), heads=heads, width=run.config.model.width)
    if answer is not None:
        about = joined_sentences([about, _("The model answers: {answer}.").format(answer=answer)])
    notes = _unknown_word_notes(sentence.tokens, labels)
    if query.example is not None and query.is_found and row is None:
        notes += tuple(filter(None, [pronoun_note(query.text, query.example.pronoun)]))
    whole_words = isinstance(run.config.data, ControlledCorpus) and isinstance(run.config.vocabulary, WordVocabulary)
    if query.example is not None and whole_words:
        notes += _character_notes(sentence.tokens, labels, query.example)
    if reads_candidates(run.config.task.prediction):
        notes += (
            _(
                "The prediction head compares the candidates' own states with the pronoun's: its answer needs no "
                "attention between them."
            ),
        )
    title = _("Layer {layer}, head {head}: {text}").format(layer=layer, head=head, text=query.text)
    units = _units(query, sentence.tokens, labels)
    return Walkthrough("sentence", title, about, spoken_language(), labels, position, tuple(steps), notes, units)


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


def _unknown_word_notes(tokens: TokenizedText, labels: tuple[str, ...]) -> tuple[str, ...]:
    """A note on the words that the model's vocabulary does not have, and one on those that it splits."""
    unknown = [labels[position] for position, token in enumerate(tokens.ids) if token == UNKNOWN]
    subwords: dict[int, list[str]] = {}
    for number, label in zip(tokens.words, labels, strict=True):
        if number >= 0:
            subwords.setdefault(number, []).append(label)
    split = ["·".join(parts) for parts in subwords.values() if len(parts) > 1]
    notes = (
        (_("Not in this model's vocabulary: {words}. What the model does there means little."), unknown),
        (_("Split into subwords that the model knows: {words}. What it does there means little."), split),
    )
    return tuple(note.format(words=", ".join(dict.fromkeys(listed))) for note, listed in notes if listed)


def _character_notes(tokens: TokenizedText, labels: tuple[str, ...], example: Example) -> tuple[str, ...]:
    """A note on the candidates that a model reads one character at a time, although it learned names as whole words.

    Every Chinese token counts as a word, so in a text without blanks only the candidates tell what belongs together.
    """
    mentions = [mention for candidate in example.candidates for mention in candidate]
    names = [[labels[position] for position in tokens.covering(mention)] for mention in mentions]
    split = ["·".join(parts) for parts in names if len(parts) > 1 and all(len(part) == 1 for part in parts)]
    return (
        (
            _(
                "Candidates that are no words of the vocabulary, read one character at a time: {words}. What the model "
                "does there means little."
            ).format(words=", ".join(dict.fromkeys(split))),
        )
        if split
        else ()
    )


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
    return tokens.covering(query.example.pronoun if query.example else last_pronoun(query.text))[0]


def _steps(
    model: PronounModel,
    blocks: Sequence[Block],
    sentence: _EncodedSentence,
    query: SentenceQuery,
    labels: tuple[str, ...],
    layer: int,
    head: int,
    answers: bool,
) -> tuple[list[Step], str | None]:
    """All steps in order, and the model's answer, or None where the query names no candidates."""
    encoder = model.encoder
    context = encoder.make_context(sentence.row)
    steps = _embedding_steps(encoder, sentence.row, context.embeddings, labels)
    hidden = context.embeddings
    for lower in blocks[:layer]:
        hidden = LayerPass(lower, context, hidden).output()
    if layer:
        parts = (steps[-1].result, _("layers"), "=", token_matrix("X", hidden, labels))
        steps.append(
            Step(
                "before",
                _("Through the layers before"),
                _(
                    "Layers are counted from 0. Before layer {layer} the vectors have passed {layer} of them, each of "
                    "which did what the next steps show."
                ).format(layer=layer),
                parts,
            )
        )
    of_block = BlockSteps(blocks[layer], labels)
    summed, mixed = of_block.add_attention(hidden, context, head)
    hidden = of_block.add_feed_forward(hidden, mixed, summed, layer)
    steps += of_block.steps
    current = steps[-1].result
    for upper in blocks[layer + 1 :]:
        hidden = LayerPass(upper, context, hidden).output()
    final = encoder.norm(hidden)
    layers_left = len(blocks) - layer - 1
    normed = not isinstance(encoder.norm, nn.Identity)
    text = _("The vectors pass the layers that are left ({layers} here).").format(layers=layers_left)
    if layers_left or normed:
        if normed:
            text = joined_sentences(
                [text, _("A last normalisation ends the encoder.")]
                if layers_left
                else [_("A last normalisation ends the encoder.")]
            )
        signs = [_("layers")] * bool(layers_left) + [_("norm")] * normed
        steps.append(
            Step("after", _("The encoder's output"), text, (current, *signs, "=", token_matrix("H", final, labels)))
        )
    if not answers or query.example is None or not query.example.candidates:
        return steps, None
    assert sentence.batch is not None
    step = _answer(model, sentence.batch, query.example)
    best = int(step.result.values[0].argmax())
    return [*steps, step], step.result.columns[best]


def _embedding_steps(encoder: Encoder, tokens: EncoderInput, embedded: Tensor, labels: tuple[str, ...]) -> list[Step]:
    """From tokens to what the first block reads, `embedded` (1, T, W), with the norm where the encoder has one here."""
    texts, vectors = (
        [_("Each token has a trained vector of {features} numbers.").format(features=embedded.shape[-1])],
        encoder.token_embeddings(tokens.ids),
    )
    if encoder.position.scale != 1:
        texts.append(
            _("It is multiplied by the square root of the width, {scale}.").format(
                scale=f"{encoder.position.scale:.4g}"
            )
        )
    if tokens.marks is not None:
        texts.append(_("Candidates carry a mark of their number besides."))
        vectors = vectors + tokens.marks
    summed = encoder.position.embed(vectors, tokens.positions)
    normed = not isinstance(encoder.embedding_norm, nn.Identity)
    parts: tuple[Matrix | str, ...] = (token_matrix("X′" if normed else "X", summed, labels),)
    if bool((summed - vectors).any()):
        positions = token_matrix("P", summed - vectors, labels)
        texts.append(_("A vector of its position is added, so that the order of the words is not lost."))
        parts = (token_matrix("E", vectors, labels), "+", positions, "=", *parts)
    steps = [Step("embedding", _("From words to vectors"), joined_sentences(texts), parts)]
    if normed:
        parts = (steps[0].result, _("norm"), "=", token_matrix("X", embedded, labels))
        steps.append(
            Step(
                "embedding_norm",
                _("Normalise the embeddings"),
                _("Every token's numbers are brought to one scale before the first layer reads them."),
                parts,
            )
        )
    return steps


def _answer(model: PronounModel, batch: Batch, example: Example) -> Step:
    scores = model.prediction_head.scores(model(batch), batch)
    names = [example.words(index) for index in range(len(example.candidates))]
    answers = scores[:, : len(names)]
    if bool(scores[0, -1].isfinite()):
        answers = torch.cat((answers, scores[:, -1:]), dim=1)
        names.append(_("none of them"))
    row = labelled_matrix(_("score"), answers, ("",), names, ("one", "tokens"), followed=False)
    share = labelled_matrix(_("share"), masked_softmax(answers), ("",), names, ("one", "tokens"), False, True)
    return Step(
        "answer",
        _("The model's answer"),
        _(
            "The prediction head reads the pronoun's vector and gives each candidate a score; the softmax of the "
            "scores is the share of each."
        ),
        (row, "softmax", "=", share),
    )

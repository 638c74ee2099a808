"""Walk-through of how the encoder of a trained run processes a sentence, with one head and its block in detail.

All values are computed by the run's own encoder, in float64.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from anaphora.analysis.evidence.storage import answer_temperatures, chosen_head
from anaphora.base.batch import Batch, EncoderInput
from anaphora.base.errors import UserError
from anaphora.base.language import language_of
from anaphora.base.translation import _, pgettext, spoken_language
from anaphora.data.batches.batching import encode_plain_text, single_batch
from anaphora.data.example import Example
from anaphora.data.own_sentence import distinct_names, find_span, last_pronoun
from anaphora.data.tokens.tokenizer import TokenizedText
from anaphora.data.tokens.words import unknown_words
from anaphora.explain.block import BlockSteps
from anaphora.explain.matrices import MAX_TOKENS, row_index
from anaphora.explain.steps import labelled_matrix
from anaphora.explain.walk import Matrix, Step, Steps, Walkthrough
from anaphora.model.attention import masked_softmax
from anaphora.model.encoder import Encoder
from anaphora.model.layers import Block, LayerPass
from anaphora.model.prediction import Bilinear, Pair, Pointer
from anaphora.model.pronoun_model import PronounModel
from anaphora.report.page.answer_notes import answer_phrases, best_answers, head_note, pronoun_note, unknown_note
from anaphora.report.wording import joined_sentences
from anaphora.runs.directory import Run
from anaphora.settings.data import ControlledCorpus
from anaphora.settings.model.encoder import check_length
from anaphora.settings.model.prediction import Label, NoPrediction, reads_candidates, slots_of
from anaphora.settings.vocabulary import WordVocabulary


@dataclass(frozen=True)
class SentenceQuery:
    """Text that a walk-through explains."""

    text: str
    example: Example | None = None  # the text with its pronoun and candidates; None if no pronoun is to be resolved
    is_detected: bool = False  # whether the pronoun was detected automatically


def walk_through_run(run: Run, query: SentenceQuery, layer: int, head: int, row: str | None) -> Walkthrough:
    """Return the walk-through of one head of a trained run, in the language that `spoken_in` has set.

    Layer and head are counted from 0. `row` names the query token whose attention row is highlighted in all steps. It
    is a token, a word (which stands for its first token), a token index from 0, or None for the pronoun.

    Raises:
        UserError: the layer, head or row does not exist, `row` has several words, the model has no attention, the text
            is empty or too long, or the text has no pronoun although `row` is None or the model needs a pronoun.
    """
    if not run.model.encoder.has_maps:
        kind = run.config.model.attention.kind
        raise UserError(f"run {run.name} has no attention to walk through (model.attention={kind})")
    model = copy.deepcopy(run.model).cpu().double()  # float64, because all digits are shown
    blocks = model.encoder.layers
    heads = blocks[0].attention.heads
    for name, value, count in (("layer", layer, len(blocks)), ("head", head, heads)):
        if not 0 <= value < count:
            raise UserError(f"{name} ({value}) must be from 0 to {count - 1} in run {run.name}")
    with torch.inference_mode():
        inputs, batch, tokens = _encode(run, model, query)
        labels = tuple(  # special tokens keep the tokenizer's spelling
            query.text[start:end] if start < end else run.tokenizer.token(token)
            for token, (start, end) in zip(tokens.ids, tokens.spans, strict=True)
        )
        followed = _followed_tokens(row, query, tokens, labels)
        unknown = unknown_words(query.text, run.tokenizer.encode(query.text), query.example)
        is_answered = unknown.is_readable and _has_answers(run, query.example)
        temperature = answer_temperatures(run).get(language_of(query.text), 1.0) if is_answered else None
        steps = _steps(model, blocks, inputs, batch, query, labels, layer, head, temperature)
    about = _(
        "Run {run}: {layers:layer|layers}, heads in each: {heads}, features per token: {width}. All numbers are the "
        "encoder’s own, in 64-bit arithmetic."
    ).format(run=run.name, layers=len(blocks), heads=heads, width=run.config.model.width)
    answers = steps[-1].result if temperature is not None else None  # the shares of the answers, by name
    if answers is not None:
        best = [answers.columns[place] for place in best_answers(answers.values[0].tolist())]
        text = (
            _("The model answers: {answer}.") if len(best) == 1 else _("The model’s answer is a tie between {answer}.")
        )
        about = joined_sentences([about, text.format(answer=answer_phrases()["comma"].join(best))])
    notes = [unknown_note(unknown)]
    word_rows: tuple[str, tuple[int, ...]] | None = None
    step_notes: tuple[str, ...] = ()
    if len(followed) > 1:
        word = query.text[tokens.spans[followed[0]][0] : tokens.spans[followed[-1]][1]]
        note = _("“{word}” has {count} tokens; the steps follow the first, “{token}”, and row= chooses another.")
        step_notes = (note.format(word=word, count=len(followed), token=labels[followed[0]]),)
        word_rows = (word, tuple(followed))
    is_read_out = False
    if query.example is not None:
        if query.is_detected and row is None:
            notes.append(pronoun_note(query.example.text, query.example.pronoun))
        is_asked = list(followed) == list(tokens.covering(query.example.pronoun))
        is_read_out = is_asked and run.config.answers_from(layer, head)
        can_answer = unknown.is_readable and not isinstance(run.config.task.prediction, NoPrediction | Label)
        if can_answer and not _has_answers(run, query.example):
            notes.append(_("The run answers once you name at least two candidates: candidates=[first,second]."))
        chosen = chosen_head(run, language_of(query.text))
        if answers is not None and chosen is not None and (chosen.layer, chosen.head) == (layer, head):
            training, shares = run.config.head_training(layer, head), answers.values[0].tolist()
            notes.append(_chosen_head_note(steps, tokens, query.example, (layer, head), shares, training))
    if isinstance(run.config.data, ControlledCorpus) and isinstance(run.config.vocabulary, WordVocabulary):
        notes.append(_split_word_note(tokens, labels))
        if query.example is not None:
            notes.append(_character_note(tokens, labels, query.example))
    if reads_candidates(run.config.task.prediction):
        notes.append(
            _(
                "The prediction head compares the candidates’ own states with the pronoun’s: its answer needs no "
                "attention between them."
            )
        )
    return Walkthrough(
        "sentence",
        _("Layer {layer}, head {head}: {text}").format(layer=layer, head=head, text=query.text),
        about,
        spoken_language(),
        labels,
        followed[0],
        tuple(steps),
        tuple(filter(None, notes)),
        _units(query, tokens, labels),
        word_rows,
        step_notes,
        is_read_out,
    )


def _units(
    query: SentenceQuery, tokens: TokenizedText, labels: tuple[str, ...]
) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """Return the label and the token indices of each unit that a summary lists: word, mention or special token."""
    mentions = [mention for candidate in query.example.candidates for mention in candidate] if query.example else []
    mention_of = {token: number for number, mention in enumerate(mentions) for token in tokens.covering(mention)}
    names = distinct_names(query.text, mentions)
    repeated = {("mention", n): name for n, name in enumerate(names) if name != query.text[slice(*mentions[n])]}
    units: dict[tuple[str, int], list[int]] = {}
    for token, word in enumerate(tokens.words):
        unit = (
            ("mention", mention_of[token]) if token in mention_of else ("word", word) if word >= 0 else ("token", token)
        )
        units.setdefault(unit, []).append(token)
    return tuple(
        (
            repeated.get(unit)
            or (
                labels[members[0]]
                if len(members) == 1
                else query.text[tokens.spans[members[0]][0] : tokens.spans[members[-1]][1]]
            ),
            tuple(members),
        )
        for unit, members in units.items()
    )


def _has_answers(run: Run, example: Example | None) -> bool:
    """Return whether the run can choose between at least two answers to an example ("none of them" counts)."""
    prediction = run.config.task.prediction
    if example is None or not example.candidates or isinstance(prediction, NoPrediction | Label):
        return False
    return len(example.candidates) + prediction.none_of_them > 1


def _chosen_head_note(
    steps: Sequence[Step],
    tokens: TokenizedText,
    example: Example,
    head: tuple[int, int],
    shares: Sequence[float],
    training: str,
) -> str:
    """Return a note for the reader on whether the explained head attends most to the model's answer."""
    weights = next(step for step in steps if step.name == "weights").result.values
    row = weights[tokens.covering(example.pronoun)].mean(axis=0)
    names = distinct_names(example.text, [mentions[0] for mentions in example.candidates])
    sums = [float(sum(row[tokens.covering(mention)].sum() for mention in mentions)) for mentions in example.candidates]
    return head_note(*head, names, sums, shares, training)


def _split_word_note(tokens: TokenizedText, labels: tuple[str, ...]) -> str | None:
    """Return a note for the reader on words that are split into subwords; None if no word is split."""
    subwords: dict[int, list[str]] = {}
    for number, label in zip(tokens.words, labels, strict=True):
        if number >= 0:
            subwords.setdefault(number, []).append(label)
    split = ["·".join(parts) for parts in subwords.values() if len(parts) > 1]
    note = _("Split into subwords that the model knows: {words}. What the model does with them means little.")
    return note.format(words=pgettext("list", ", ").join(dict.fromkeys(split))) if split else None


def _character_note(tokens: TokenizedText, labels: tuple[str, ...], example: Example) -> str | None:
    """Return a note for the reader on candidates that are split into characters because the vocabulary lacks them."""
    # Other words are not checked: in a text without spaces, only candidates show which characters form a word.
    mentions = [mention for candidate in example.candidates for mention in candidate]
    names = [[labels[position] for position in tokens.covering(mention)] for mention in mentions]
    split = ["·".join(parts) for parts in names if len(parts) > 1 and all(len(part) == 1 for part in parts)]
    note = _(
        "Candidates that are not in the vocabulary, read one character at a time: {words}. What the model "
        "does with them means little."
    )
    return note.format(words=pgettext("list", ", ").join(dict.fromkeys(split))) if split else None


def _encode(run: Run, model: PronounModel, query: SentenceQuery) -> tuple[EncoderInput, Batch | None, TokenizedText]:
    """Return the encoder's input, the batch of the text's example (None if there is no pronoun), and the tokens."""
    batch: Batch | None = None
    if query.example is not None:
        batch, tokens = single_batch(query.example, run.tokenizer, slots_of(run.config.task.prediction))
        inputs = model.encoder_input(batch)
    else:
        model.check_without_query()
        inputs, tokens = encode_plain_text(query.text, run.tokenizer)
    count = len(tokens.ids)
    if not any(start < end for start, end in tokens.spans):
        raise UserError(f"text ({query.text!r}) has no word")
    if count > MAX_TOKENS:
        raise UserError(
            f"text has {count} tokens; at most {MAX_TOKENS} can be explained; `anaphora attention` and the page of "
            "`anaphora look` take longer texts"
        )
    check_length(run.config.model, count)
    return inputs, batch, tokens


def _followed_tokens(
    row: str | None, query: SentenceQuery, tokens: TokenizedText, labels: tuple[str, ...]
) -> list[int]:
    """Return the token indices of the requested query word or, if `row` is None, of the pronoun."""
    if row is not None:
        if row.isdecimal() or row.lower() in (label.lower() for label in labels):
            return [row_index(row, labels)]
        start, end = find_span(query.text, row, "row")
        if any(map(str.isspace, query.text[start:end])):
            raise UserError(f"row ({row!r}) has several words; the steps follow one token, so name one word")
        return tokens.covering((start, end))
    return tokens.covering(query.example.pronoun if query.example else last_pronoun(query.text))


def _steps(
    model: PronounModel,
    blocks: Sequence[Block],
    inputs: EncoderInput,
    batch: Batch | None,
    query: SentenceQuery,
    labels: tuple[str, ...],
    layer: int,
    head: int,
    temperature: float | None,
) -> Steps:
    """Return all steps of the walk-through.

    The last step is the model's answer, calibrated by `temperature`; it is left out if `temperature` is None.
    """
    encoder = model.encoder
    context = encoder.make_context(inputs)
    steps = _embedding_steps(encoder, inputs, context.embeddings, labels)
    hidden = context.embeddings
    for lower in blocks[:layer]:
        hidden = LayerPass(lower, context, hidden).output()
    if layer:
        steps.add(
            "before",
            _("Through the layers before"),
            _(
                "Layers are counted from 0. Before layer {layer} the vectors have passed {layer} of them, each of "
                "which did what the next steps show."
            ).format(layer=layer),
            (steps[-1].result, _("layers"), "=", labelled_matrix("X", hidden[0], labels)),
        )
    of_block = BlockSteps(blocks[layer], labels)
    summed, mixed = of_block.add_attention(hidden, context, head)
    hidden = of_block.add_feed_forward(hidden, mixed, summed, layer)
    steps += of_block.steps
    for upper in blocks[layer + 1 :]:
        hidden = LayerPass(upper, context, hidden).output()
    layers_left = len(blocks) - layer - 1
    texts, signs = [], []
    if layers_left:
        texts.append(_("The vectors pass the layers that are left ({layers} here).").format(layers=layers_left))
        signs.append(_("layers"))
    if not isinstance(encoder.norm, nn.Identity):
        texts.append(_("A last normalisation ends the encoder."))
        signs.append(_("norm"))
    if texts:
        final = labelled_matrix("H", encoder.norm(hidden)[0], labels)
        steps.add("after", _("The encoder’s output"), joined_sentences(texts), (steps[-1].result, *signs, "=", final))
    if temperature is None:
        return steps
    assert batch is not None
    assert query.example is not None
    steps.append(_answer(model, batch, query.example, temperature))
    return steps


def _embedding_steps(encoder: Encoder, tokens: EncoderInput, embedded: Tensor, labels: tuple[str, ...]) -> Steps:
    """Return the steps from tokens to the first block's input, the embeddings, (1, tokens, width)."""
    texts = [_("Each token has a trained vector of {features} numbers.").format(features=embedded.shape[-1])]
    vectors = encoder.token_embeddings(tokens.ids)
    if encoder.position.scale != 1:
        scale = f"{encoder.position.scale:.4g}"
        texts.append(_("It is multiplied by the square root of the width, {scale}.").format(scale=scale))
    if tokens.marks is not None:
        texts.append(_("Candidates also carry a mark of their number."))
        vectors = vectors + tokens.marks
    summed = encoder.position.embed(vectors, tokens.positions)
    normed = not isinstance(encoder.embedding_norm, nn.Identity)
    parts: tuple[Matrix | str, ...] = (labelled_matrix("X′" if normed else "X", summed[0], labels),)
    if bool((summed - vectors).any()):
        positions = labelled_matrix("P", (summed - vectors)[0], labels)
        texts.append(_("A vector of its position is added, so that the order of the words is not lost."))
        parts = (labelled_matrix("E", vectors[0], labels), "+", positions, "=", *parts)
    steps = Steps()
    result = steps.add("embedding", _("From words to vectors"), joined_sentences(texts), parts)
    if normed:
        steps.add(
            "embedding_norm",
            _("Normalise the embeddings"),
            _("Every token’s numbers are brought to one scale before the first layer reads them."),
            (result, _("norm"), "=", labelled_matrix("X", embedded[0], labels)),
        )
    return steps


def _answer(model: PronounModel, batch: Batch, example: Example, temperature: float) -> Step:
    scores = model.prediction_head.scores(model(batch), batch)
    names = distinct_names(example.text, [mentions[0] for mentions in example.candidates])
    answers = scores[:, : len(names)]
    if bool(scores[0, -1].isfinite()):
        answers = torch.cat((answers, scores[:, -1:]), dim=1)
        names.append(_("none of them"))
    row = labelled_matrix(_("score"), answers, ("",), names, ("one", "tokens"), followed=False)
    shares = masked_softmax(answers / temperature)
    share = labelled_matrix(_("share"), shares, ("",), names, ("one", "tokens"), False, True)
    texts = [_score_text(model), _("The softmax of the scores gives each candidate its share.")]
    divided = []
    if temperature != 1:
        calibrated = _(
            "Before that, the scores are divided by the temperature {temperature}, which calibrates the shares."
        )
        texts.append(calibrated.format(temperature=f"{temperature:.3f}"))
        divided = [f"÷ {temperature:.4g}"]
    parts: tuple[Matrix | str, ...] = (row, *divided, "softmax", "=", share)
    return Step("answer", _("The model’s answer"), joined_sentences(texts), parts)


def _score_text(model: PronounModel) -> str:
    prediction = model.prediction_head
    if isinstance(prediction, Pointer):
        text = _(
            "A candidate’s score is the natural logarithm of the pronoun’s weight on it in layer {layer} head {head}."
        )
        return text.format(layer=prediction.layer % len(model.encoder.blocks), head=prediction.head)
    if isinstance(prediction, Bilinear | Pair):
        return _("The prediction head reads the vectors of the pronoun and of a candidate and gives it a score.")
    return _("The prediction head reads the pronoun’s vector and gives each candidate a score.")

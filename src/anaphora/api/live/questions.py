"""Requests of the live page (served on localhost), and replies with attention maps and candidate probabilities.

A request may ask for heads to be ablated, or for attention edges (query token to key token) to be knocked out.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from anaphora.analysis.causal.interventions import Intervention, intervene, knockout_edges, replace_head_outputs
from anaphora.analysis.maps.capture import answers_pronouns, text_maps, whole_maps
from anaphora.analysis.maps.words import word_tokens
from anaphora.analysis.results.scores import Head, existing_head
from anaphora.api.maps import labelled_attention
from anaphora.api.runs import OpenRun
from anaphora.base.errors import UserError
from anaphora.base.translation import N_, _
from anaphora.data.example import Example, Span, overlapping
from anaphora.data.own_sentence import distinct_names, optional_example
from anaphora.data.tokens.tokenizer import TokenizedText
from anaphora.data.tokens.words import UnknownWords, unknown_words
from anaphora.report.page.answer_notes import head_note, too_few_note, unknown_note, unread_note
from anaphora.report.page.explorer import MOST_WEIGHTS, attention_entry

if TYPE_CHECKING:
    from anaphora.api.models import AnyModel

MOST_CHARACTERS = 4_000
MOST_EDITS = 200


class FirstSentence(NamedTuple):
    """Sentence that the live page shows when it is opened, with its pronoun and candidates."""

    text: str
    pronoun: str
    candidates: list[str]


FIRST_SENTENCES = {
    "en": (
        FirstSentence("My sister called my brother because she was lost.", "she", ["sister", "brother"]),
        FirstSentence("Anna was rescued by Emma because she was weak.", "she", ["Anna", "Emma"]),
    ),
    "zh": (
        FirstSentence("姐姐给弟弟打电话，因为她迷路了。", "她", ["姐姐", "弟弟"]),
        FirstSentence("小红被美玲救了，因为她很虚弱。", "她", ["小红", "美玲"]),
    ),
}
"""For each language, an everyday sentence, and a sentence of the built-in corpus for runs with a small vocabulary."""


def first_sentence(model: AnyModel, language: str) -> FirstSentence:
    """Return the sentence that the live page shows when it is opened.

    This is an everyday sentence. If the vocabulary of a run lacks a word of it, the sentence is from the built-in
    corpus instead.
    """
    everyday, of_corpus = FIRST_SENTENCES[language]
    return of_corpus if isinstance(model, OpenRun) and model.run.tokenizer.encode(everyday.text).unread else everyday


class EdgeCut(NamedTuple):
    """Attention edge to knock out in one head, from the word with index `attending` to the word with index `attended`.

    Special tokens and an attention sink are counted as words.
    """

    layer: int
    head: int
    attending: int
    attended: int


@dataclass(frozen=True)
class LiveQuestion:
    """Request of the live page: a sentence, and interventions on the model."""

    text: str
    example: Example | None  # pronoun and candidates; None if no pronoun is given or found
    cuts: tuple[EdgeCut, ...] = ()  # edges to knock out before the softmax
    off: tuple[Head, ...] = ()  # heads whose output is set to zero


def parse(message: Any) -> LiveQuestion:
    """Parse a request of the live page.

    The JSON object `message` has "text" and optionally "pronoun", "candidates", "cuts" (edges to knock out, each as
    [layer, head, from, to]) and "off" (heads to ablate, each as [layer, head]).

    Raises:
        UserError: the text is missing, or a value has the wrong type or is too long; also the errors of
            `optional_example`.
    """
    if not isinstance(message, Mapping):
        raise UserError(N_("the request must be a JSON object"))
    text, pronoun, candidates = message.get("text"), message.get("pronoun"), message.get("candidates", [])
    if not isinstance(text, str) or not text.strip():
        raise UserError(N_("Type a sentence first."))
    if len(text) > MOST_CHARACTERS:
        message = N_("text: it has {characters} characters; at most {most} are read at once")
        raise UserError(message, characters=len(text), most=MOST_CHARACTERS)
    if not (pronoun is None or isinstance(pronoun, str)):
        raise UserError(N_("pronoun ({pronoun!r}) must be a text"), pronoun=pronoun)
    if not isinstance(candidates, list) or not all(isinstance(one, str) for one in candidates):
        raise UserError(N_("candidates ({candidates!r}) must be a list of texts"), candidates=candidates)
    example = optional_example(text, pronoun or None, candidates)
    return LiveQuestion(
        text,
        example,
        tuple(EdgeCut(*numbers) for numbers in _numbers(message, "cuts", 4)),
        tuple(Head(*numbers) for numbers in _numbers(message, "off", 2)),
    )


def reply(model: AnyModel, question: LiveQuestion) -> dict[str, Any]:
    """Return a model's attention maps and, if its prediction head scores candidates, the candidates' probabilities.

    The result is JSON-serialisable. "answers" holds the probabilities, or None; "chosen" is [layer, head] of the head
    chosen on development items, or None; "seconds" is the elapsed time.

    Raises:
        UserError: the model cannot process the text or has no attention maps, its attention cannot be edited, an
            intervention has a layer, head or word out of range, or a result file of the run is damaged.
    """
    started = time.perf_counter()
    tokens = _tokens(model, question.text)
    unknown = unknown_words(question.text, tokens, question.example)
    labels = tokens if isinstance(model, OpenRun) else model.labels(tokens)
    interventions = _interventions(question, _tokens_of_words(tokens, labels), model)
    if isinstance(model, OpenRun):
        maps, answers = _run_reply(model, question, interventions, unknown.is_readable)
    else:
        maps, answers = model.token_maps(tokens, interventions), None
    attention = labelled_attention(question.text, labels, maps, by="word", model=model.name, example=question.example)
    entry = attention_entry(question.text, attention.words, attention.spans, attention.weights, question.example)
    head = model.head_for(question.text) if isinstance(model, OpenRun) else None
    return {
        "sentence": entry,
        "spans": [list(span) for span in attention.spans],
        "pronoun": None if question.example is None else list(question.example.pronoun),
        "answers": answers,
        "notes": _notes(model, question, tokens.spans, maps, unknown, answers),
        "chosen": None if head is None else [head.layer, head.head],
        "is_decoder": model.is_decoder,
        "seconds": round(time.perf_counter() - started, 3),
    }


def _run_reply(
    model: OpenRun, question: LiveQuestion, interventions: Sequence[Intervention], is_readable: bool
) -> tuple[NDArray[np.float32], list[dict[str, Any]] | None]:
    run, example = model.run, question.example
    prediction = run.config.task.prediction
    with intervene(run.model.encoder, *interventions):
        if example is None:
            return text_maps(run.model, run.tokenizer, question.text)[1], None
        maps = whole_maps(run.model, run.tokenizer, example)[1]
        count = len(example.candidates) + prediction.none_of_them
        if not is_readable or not example.candidates or count < 2 or not answers_pronouns(prediction):
            return maps, None
        answer = model.answers([example])[0]
    names = distinct_names(question.text, [one.span for one in answer.candidates])
    shares: list[dict[str, Any]] = [
        {"candidate": name, "share": one.probability} for name, one in zip(names, answer.candidates, strict=True)
    ]
    if answer.none_of_them > 0:
        shares.append({"candidate": None, "share": answer.none_of_them})
    return maps, shares


def _notes(
    model: AnyModel,
    question: LiveQuestion,
    spans: Sequence[Span],
    maps: NDArray[np.float32],
    unknown: UnknownWords,
    answers: list[dict[str, Any]] | None,
) -> list[str]:
    """Return the notes shown below the model's answer; `maps`, (L, H, T, T), are over T tokens at `spans`."""
    example, notes = question.example, []
    if not isinstance(model, OpenRun) or not answers_pronouns(model.run.config.task.prediction):
        if unknown.words:
            notes.append(unread_note(unknown.words))
        notes.append(_("This model gives maps and no answer about pronouns."))
        return notes
    if note := unknown_note(unknown):
        notes.append(note)
    if example is None:
        notes.append(_("Mark a pronoun and its candidates to ask for an answer."))
    elif answers is None and unknown.is_readable:
        notes.append(too_few_note(question.text[slice(*example.pronoun)]))
    elif answers is not None and (head := model.head_for(question.text)) is not None:
        # Of "she'd", only the row of "she" is used, as in every measurement.
        row = maps[head.layer, head.head, overlapping(spans, example.pronoun)].mean(axis=0)
        weights = [
            sum(float(row[overlapping(spans, mention)].sum()) for mention in mentions)
            for mentions in example.candidates
        ]
        names = distinct_names(question.text, [mentions[0] for mentions in example.candidates])
        shares = [answer["share"] for answer in answers]
        training = model.run.config.head_training(head.layer, head.head)
        notes.append(head_note(head.layer, head.head, names, weights, shares, training))
    return notes


def _tokens(model: AnyModel, text: str) -> TokenizedText:
    """Tokenize a text; raise UserError if it is too long for the model, or its maps have more than `MOST_WEIGHTS`."""
    tokens = model.tokenize(text)
    heads = len(model.attending_layers) * model.heads
    if heads * len(tokens.ids) ** 2 > MOST_WEIGHTS:
        message = N_("text: it has {tokens} tokens; the maps of all {heads:head|heads} are shown for at most {most}")
        raise UserError(message, tokens=len(tokens.ids), heads=heads, most=math.isqrt(MOST_WEIGHTS // heads))
    return tokens


def _tokens_of_words(tokens: TokenizedText, labels: TokenizedText) -> list[list[int]]:
    """Return the token indices of each word on the page; an attention sink counts as a first word without tokens."""
    before = len(labels.ids) - len(tokens.ids)
    return [[token - before for token in part if token >= before] for part in word_tokens(labels.words)]


def _interventions(question: LiveQuestion, tokens: Sequence[Sequence[int]], model: AnyModel) -> list[Intervention]:
    """Return the requested interventions; an edge between two words means all edges between their tokens.

    Args:
        tokens: token indices of each word; empty for an attention sink.
    """
    edits: tuple[EdgeCut | Head, ...] = (*question.cuts, *question.off)
    for edited in edits:
        existing_head(Head(edited.layer, edited.head), model.attending_layers, model.heads)
    edges: dict[Head, list[tuple[int, int]]] = {}
    for cut in question.cuts:
        for place in (cut.attending, cut.attended):
            if not 0 <= place < len(tokens):
                message = N_("word ({place}) must be a position from 0 to {last}")
                raise UserError(message, place=place, last=len(tokens) - 1)
            if not tokens[place]:
                message = N_("word ({place}) is the attention sink: only edges between tokens can be knocked out")
                raise UserError(message, place=place)
        pairs = edges.setdefault(Head(cut.layer, cut.head), [])
        pairs += product(tokens[cut.attending], tokens[cut.attended])
    interventions: list[Intervention] = []
    if edges:
        columns = {head: torch.tensor(pairs).T for head, pairs in edges.items()}
        interventions.append(knockout_edges({head: (query, key) for head, (query, key) in columns.items()}))
    if question.off:
        interventions.append(replace_head_outputs(dict.fromkeys(question.off, torch.zeros(()))))
    return interventions


def _numbers(message: Mapping[str, Any], name: str, count: int) -> list[list[int]]:
    rows = message.get(name, [])
    if not isinstance(rows, list) or len(rows) > MOST_EDITS:
        raise UserError(N_("{name} must be a list of at most {most}"), name=name, most=MOST_EDITS)
    for row in rows:
        whole = isinstance(row, list) and len(row) == count
        if not whole or not all(isinstance(each, int) and not isinstance(each, bool) for each in row):
            raise UserError(N_("{name}: {row!r} must be {count} whole numbers"), name=name, row=row, count=count)
    return rows

"""A trained run step by step: one head of one layer on one sentence, with the block around it, in float64.

T tokens, W width, D features a head. Every number is what the run's own encoder computes; it is only asked more often.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn

from anaphora.checkpoint import Run
from anaphora.data.batch import Batch, one, unasked
from anaphora.data.example import Example
from anaphora.data.tokenizer import Tokens
from anaphora.errors import UserError
from anaphora.explain.calculation import Labels, attention_steps, heads_steps, matrix, projected, projection
from anaphora.explain.matrices import LONGEST, which_row
from anaphora.explain.phrases import Phrases
from anaphora.explain.walk import Matrix, Step, Walk
from anaphora.model.attention import Attention, Context, attend, normalised
from anaphora.model.block import Block
from anaphora.model.encoder import Encoder
from anaphora.model.resolver import Resolver
from anaphora.model.settings import NoReadout, check_length, reads_candidates, slots_of
from anaphora.question import find
from anaphora.specials import UNKNOWN


@dataclass(frozen=True)
class Sentence:
    """What is asked: a text, and where it has one, its pronoun with candidates."""

    text: str
    example: Example | None = None


@dataclass(frozen=True)
class _Seen:
    """A text as the encoder reads it: ids, places, segments (1, T), marks (1, T, W) or None, second (1, T) or None."""

    ids: Tensor
    places: Tensor
    segments: Tensor
    marks: Tensor | None
    second: Tensor | None
    batch: Batch | None
    tokens: Tokens


def walk(run: Run, asked: Sentence, layer: int, head: int, row: str | None, words: Phrases) -> Walk:
    """The walk-through of one head of a trained run.

    Args:
        row: the token in hand, a word or a number; by default the pronoun, else the last word.

    Raises:
        UserError: there is no such layer, head or row, the model has no attention, or the text is empty or too long.
    """
    if not run.resolver.encoder.has_maps:
        kind = run.config.model.attention.kind
        raise UserError(f"run {run.name} has no attention to walk through (model.attention={kind})")
    resolver = copy.deepcopy(run.resolver).cpu().double()  # one sentence, to all its digits
    blocks = [block for block in resolver.encoder.blocks if isinstance(block, Block)]
    heads = blocks[0].attention.heads
    for name, value, count in (("layer", layer, len(blocks)), ("head", head, heads)):
        if not 0 <= value < count:
            raise UserError(f"{name} ({value}) must be from 0 to {count - 1} in run {run.name}")
    with torch.inference_mode():
        seen = _read(run, resolver, asked)
        labels = token_labels(asked.text, seen.tokens, words("labels", "start"))
        place = _row(row, asked, seen.tokens, labels)
        answers = not isinstance(run.config.task.readout, NoReadout)
        steps, answer = _steps(resolver, blocks, seen, asked, labels, layer, head, answers, words)
    about = words("run", "about", run=run.name, layers=len(blocks), heads=heads, width=run.config.model.width)
    if answer is not None:
        about = words.joined(about, words("run", "answer", answer=answer))
    notes = _unfamiliar(seen.tokens, labels, words)
    if reads_candidates(run.config.task.readout):
        notes += (words("run", "compared"),)
    title = words("run", "title", layer=layer, head=head, text=asked.text)
    return Walk("sentence", title, about, words.language, labels, place, tuple(steps), notes)


def _unfamiliar(tokens: Tokens, labels: tuple[str, ...], words: Phrases) -> tuple[str, ...]:
    """What the model's vocabulary does not have."""
    unknown = [labels[place] for place, token in enumerate(tokens.ids) if token == UNKNOWN]
    pieces: dict[int, list[str]] = {}
    for number, label in zip(tokens.words, labels, strict=True):
        if number >= 0:
            pieces.setdefault(number, []).append(label)
    cut = ["·".join(parts) for parts in pieces.values() if len(parts) > 1]
    told = (("unknown", unknown), ("pieces", cut))
    return tuple(words("run", name, words=", ".join(dict.fromkeys(found))) for name, found in told if found)


def token_labels(text: str, tokens: Tokens, start: str) -> tuple[str, ...]:
    """Every token as the text writes it; the first, which stands for no text, as `start`."""
    return tuple(text[left:right] if left < right else start for left, right in tokens.spans)


def _read(run: Run, resolver: Resolver, asked: Sentence) -> _Seen:
    if asked.example is not None:
        batch, tokens = one(asked.example, run.tokenizer, slots_of(run.config.task.readout))
        marks = resolver.readout.marks(batch.slots)
        second = resolver.second(batch)
        seen = _Seen(batch.inputs, batch.places, batch.segments, marks, second, batch, tokens)
    else:
        resolver.check_unasked()
        (ids, places, segments), tokens = unasked(asked.text, run.tokenizer)
        seen = _Seen(ids, places, segments, None, None, None, tokens)
    count = len(tokens.ids)
    if count == 1:
        raise UserError(f"text ({asked.text!r}) has no word")
    if count > LONGEST:
        raise UserError(f"text has {count} tokens; at most {LONGEST} can be shown")
    check_length(run.config.model, count)
    return seen


def _row(asked: str | None, about: Sentence, tokens: Tokens, labels: tuple[str, ...]) -> int:
    if asked is not None:
        if asked.isdecimal() or asked.lower() in (label.lower() for label in labels):
            return which_row(asked, labels)
        # A word that the model reads in pieces is followed by its first.
        return tokens.covering(find(about.text, asked, "row"))[0]
    if about.example is not None:
        return tokens.covering(about.example.pronoun)[0]
    worded = [place for place, label in enumerate(labels) if any(map(str.isalnum, label))]
    return worded[-1]


def _steps(
    resolver: Resolver,
    blocks: Sequence[Block],
    seen: _Seen,
    asked: Sentence,
    labels: tuple[str, ...],
    layer: int,
    head: int,
    answers: bool,
    words: Phrases,
) -> tuple[list[Step], str | None]:
    """All steps in order, and what the model answers, if it is asked."""
    encoder = resolver.encoder
    context = encoder.begin(seen.ids, seen.places, seen.segments, seen.marks, seen.second)
    steps = [_embedding(encoder, seen.ids, seen.marks, context.embedded, labels, words)]
    hidden = context.embedded
    for before in blocks[:layer]:
        hidden = before(hidden, context)
    if layer:
        parts = (steps[-1].result, words("signs", "layers"), "=", _rows("X", hidden, labels))
        steps.append(Step("before", words("before", "title"), words("before", "text", layer=layer), parts))
    block = blocks[layer]
    more, hidden = _block(block, hidden, context, labels, layer, head, words)
    steps += more
    current = steps[-1].result
    for after in blocks[layer + 1 :]:
        hidden = after(hidden, context)
    final = encoder.norm(hidden)
    left = len(blocks) - layer - 1
    normed = not isinstance(encoder.norm, nn.Identity)
    text = words("after", "text", layers=left)
    if left or normed:
        if normed:
            text = words.joined(text, words("after", "normed")) if left else words("after", "normed")
        signs = [words("signs", "layers")] * bool(left) + [words("signs", "norm")] * normed
        steps.append(Step("after", words("after", "title"), text, (current, *signs, "=", _rows("H", final, labels))))
    if not answers or asked.example is None or not asked.example.candidates:
        return steps, None
    assert seen.batch is not None
    step = _answer(resolver, seen.batch, asked.example, words)
    best = int(step.result.values[0].argmax())
    return [*steps, step], step.result.columns[best]


def _rows(name: str, values: Tensor, labels: tuple[str, ...]) -> Matrix:
    """(1, T, W) as a matrix whose rows are the tokens."""
    return matrix(name, values[0], labels)


def _embedding(
    encoder: Encoder, ids: Tensor, marks: Tensor | None, embedded: Tensor, labels: tuple[str, ...], words: Phrases
) -> Step:
    text, tokens = words("embedding", "text", features=embedded.shape[-1]), encoder.looked_up(ids)
    if encoder.position.scale != 1:
        text = words.joined(text, words("embedding", "scaled", scale=f"{encoder.position.scale:.4g}"))
    if marks is not None:
        text, tokens = words.joined(text, words("embedding", "marked")), tokens + marks
    title, added = words("embedding", "title"), embedded - tokens
    if not bool(added.any()):
        return Step("embedding", title, text, (_rows("X", embedded, labels),))
    parts = (_rows("E", tokens, labels), "+", _rows("P", added, labels), "=", _rows("X", embedded, labels))
    return Step("embedding", title, words.joined(text, words("embedding", "added")), parts)


def _block(
    block: Block, hidden: Tensor, context: Context, labels: tuple[str, ...], layer: int, head: int, words: Phrases
) -> tuple[list[Step], Tensor]:
    """The steps of one block, and what it puts out (1, T, W)."""
    attention = block.attention
    start = _rows("X", hidden, labels)
    steps: list[Step] = []

    def add(name: str, *parts: Matrix | str, **values: object) -> Matrix:
        title = words(name, "title", **values) if name in ("second_residual", "last_norm") else words(name, "title")
        steps.append(Step(name, title, words(name, "text", **values), parts))
        return steps[-1].result

    norm = words("signs", "norm")
    read, content = block.reads(hidden, context)
    reads = add("norm", start, norm, "=", _rows("N", read, labels)) if block.pre else start
    offers = reads
    if block.value_norm is not None:
        offers = add("content", _rows("E", context.embedded, labels), norm, "=", _rows("C", content, labels))
    plain = attention.unturned(read, content)
    query, key, value = attention.project(read, content, context)
    made = zip(("queries", "keys", "values"), ("Q", "K", "V"), (reads, reads, offers), plain, strict=True)
    for name, letter, source, whole in made:
        weight, added = _of_head(attention, {"Q": "query", "K": "key", "V": "value"}[letter], head)
        steps.append(projection(words, name, letter, source, weight, added, whole[0, head]))
    if not torch.equal(query, plain[0]):
        sign = words("signs", "turn")
        before, after = ([_rows(n, t[:, head], labels) for n, t in zip("QK", ts, strict=True)]
                         for ts in ((plain[0], plain[1]), (query, key)))  # fmt: skip
        add("turn", before[0], sign, "=", after[0], before[1], sign, "=", after[1])
    bias = attention.score_bias(context)
    names = Labels(labels, labels)
    steps += attention_steps(words, names, query, key, value, bias, head, attention.scale is None)
    mixed = attention.mix(query, key, value, context)
    if attention.heads > 1:
        weights = attention.maps(query, key, context)
        steps += heads_steps(words, names, weights, attend(query, key, value, bias, scale=attention.scale), head)
    gained = attention.finish(mixed)
    found = matrix("M", mixed[0], labels)
    output = cast("nn.Linear | None", getattr(attention, "output", None))
    if output is not None:
        steps.append(projected(words, names, mixed[0], output.weight.T, output.bias, gained[0]))
        found = steps[-1].result
    summed = add("residual", start, "+", found, "=", _rows("Z", hidden + gained, labels))
    half = block.add_attention(hidden, mixed)
    if block.pre:
        narrow = block.feed_forward_norm(half)
        enters = add("second_norm", summed, norm, "=", _rows("N", narrow, labels))
    else:
        narrow = half
        enters = summed = add("first_norm", summed, norm, "=", _rows("N", half, labels))
    inside = block.feed_forward.inside(narrow)
    grown = block.feed_forward(narrow)
    sign = words("signs", "feed_forward")
    parts = (enters, sign, "=", _rows("F", inside, labels), sign, "=", _rows("G", grown, labels))
    more = add("feed_forward", *parts, inside=inside.shape[-1], features=grown.shape[-1])
    whole = block.complete(hidden, mixed)
    if block.pre:
        add("second_residual", summed, "+", more, "=", _rows("X′", whole, labels), layer=layer)
    else:
        last = add("second_residual", summed, "+", more, "=", _rows("Z′", half + grown, labels), layer=layer)
        add("last_norm", last, norm, "=", _rows("X′", whole, labels), layer=layer)
    return steps, whole


def _of_head(attention: Attention, name: str, head: int) -> tuple[Tensor | None, Tensor | None]:
    """A projection's share of one head: (W, D) and (D,), or None for what this kind of attention does not have."""
    linear = getattr(attention, name, None)
    if not isinstance(linear, nn.Linear):
        return None, None
    size = linear.out_features // attention.heads
    mine = slice(head * size, (head + 1) * size)
    return linear.weight[mine].T, None if linear.bias is None else linear.bias[mine]


def _answer(resolver: Resolver, batch: Batch, example: Example, words: Phrases) -> Step:
    scores = resolver.readout.scores(resolver.see(batch), batch)
    names = [example.words(index) for index in range(len(example.candidates))]
    known = scores[:, : len(names)]
    if bool(scores[0, -1].isfinite()):
        known = torch.cat((known, scores[:, -1:]), dim=1)
        names.append(words("labels", "none_of_them"))
    row = matrix(words("labels", "score"), known, ("",), names, ("one", "tokens"), followed=False)
    share = matrix(words("labels", "share"), normalised(known), ("",), names, ("one", "tokens"), False, True)
    return Step("answer", words("answer", "title"), words("answer", "text"), (row, "softmax", "=", share))

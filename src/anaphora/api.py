"""What a notebook needs: open a run, look at a sentence, read a row, draw it.

    run = anaphora.load("outputs/demo")
    attention = run.attention("Anna was helped by Emma because she was very weak.")
    attention.row("she").top(3)

L layers, H heads, W words (or tokens). Layers and heads are counted from 0. Everywhere the weight to several tokens or
words is the sum of their weights, and the weight from them the mean of their rows (Clark et al. 2019, section 4.1).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from anaphora.analysis.maps.capture import text_maps, whole_maps
from anaphora.analysis.maps.words import SPECIAL, word_map
from anaphora.analysis.scores.heads import Head
from anaphora.base.device import Device
from anaphora.base.errors import UserError
from anaphora.data.example import Example
from anaphora.data.own_sentence import example_from_query
from anaphora.runs.directory import Run
from anaphora.runs.directory import load as load_run
from anaphora.settings.model.attention import heads_of
from anaphora.settings.model.encoder import check_length

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure

    from anaphora.explain.walk import Walkthrough

_UNITS = ("word", "token")


def load(directory: str | Path, device: str = "cpu") -> OpenRun:
    """Open a finished run, its model on "cpu" or "cuda".

    Raises:
        UserError: the directory holds none, the training has not finished, a file is broken, or the device is not
            there.
    """
    if device not in ("cpu", "cuda"):
        raise UserError(f"device ({device!r}) must be one of cpu, cuda")
    return OpenRun(load_run(directory, Device(device=device)))


class OpenRun:
    """A trained run: the attention, the answers and the walk-throughs of any sentence."""

    def __init__(self, run: Run) -> None:
        self.run = run

    @property
    def name(self) -> str:
        """The name of the run's directory."""
        return self.run.name

    @property
    def layers(self) -> int:
        """How many layers the encoder has."""
        return int(self.run.config.model.layers)

    @property
    def heads(self) -> int:
        """How many heads each layer has."""
        return heads_of(self.run.config.model.attention)

    @cached_property
    def chosen_head(self) -> Head | None:
        """The head that was chosen on the development split, or None if scores were never taken."""
        from anaphora.analysis.evidence.storage import find_head

        return find_head(self.run.directory)

    def attention(
        self, text: str, pronoun: str | None = None, candidates: Sequence[str] = (), by: str = "word"
    ) -> Attention:
        """The attention of every layer and head in one text.

        Args:
            text: English or Chinese.
            pronoun: a word of the text, or its characters as "start:end"; needed only with candidates.
            candidates: what it may refer to; models that read the candidates' marks then get them.
            by: "word" merges the subwords of split words (summed to, averaged from), "token" does not.

        Raises:
            UserError: a word is not in the text, or the text does not fit the model.
        """
        if by not in _UNITS:
            raise UserError(f"by ({by!r}) must be one of {', '.join(_UNITS)}")
        example = self._example(text, pronoun, candidates)
        model, tokenizer = self.run.model, self.run.tokenizer
        check_length(self.run.config.model, len(tokenizer.encode(text).ids))
        if example is None:
            tokens, maps = text_maps(model, tokenizer, text)
        else:
            tokens, maps = whole_maps(model, tokenizer, example, self.run.config.task.prediction)
        spans = list(tokens.spans)
        if by == "word":
            maps = word_map(maps, tokens.words)
            spans = _word_spans(tokens.spans, tokens.words)
        words = tuple(text[start:end] if start < end else SPECIAL for start, end in spans)
        return Attention(text, words, tuple(spans), maps, self.chosen_head, self.name)

    def answer(self, text: str, pronoun: str, candidates: Sequence[str]) -> str | None:
        """The candidate that the model names, or None for "none of them".

        Raises:
            UserError: a word is not in the text, or the run was trained without a prediction head.
        """
        from anaphora.analysis.maps.answers import NO_CANDIDATE
        from anaphora.analysis.maps.capture import capture_run

        example = self._example(text, pronoun, candidates)
        if example is None or not example.candidates:
            raise UserError("an answer needs a pronoun and its candidates")
        answers = capture_run(self.run, [example]).answers
        if answers is None:
            raise UserError("this run was trained without a prediction head (task.prediction=none): it answers nothing")
        named = int(answers.candidates[0])
        return None if named == NO_CANDIDATE else example.words(named)

    def explain(
        self,
        text: str,
        pronoun: str | None = None,
        candidates: Sequence[str] = (),
        layer: int | None = None,
        head: int | None = None,
        language: str | None = None,
    ) -> Walkthrough:
        """The walk-through of one head, as scripts/explain.py shows it; the numbers stand in its steps' matrices."""
        from anaphora.base.language import language_of
        from anaphora.explain.encoding import SentenceQuery, walk_through_run
        from anaphora.explain.phrases import Phrases

        requested = _requested_head(layer, head, self.chosen_head, self.layers, self.heads, self.name)
        query = SentenceQuery(text, self._example(text, pronoun, candidates))
        words = Phrases(language or language_of(text))
        return walk_through_run(self.run, query, requested.layer, requested.head, None, words)

    def _example(self, text: str, pronoun: str | None, candidates: Sequence[str]) -> Example | None:
        if pronoun is None:
            if candidates:
                raise UserError("candidates go with a pronoun")
            return None
        return example_from_query(text, pronoun, candidates)

    def __repr__(self) -> str:
        return f"<run {self.name}: {self.layers} layers of {self.heads} heads>"


@dataclass(frozen=True, eq=False)
class Attention:
    """The attention in one text, with labelled axes.

    Attributes:
        text: the sentence.
        words: W words, or tokens; the first stands for no text.
        spans: their W character spans.
        weights: (L, H, W, W); a row is the word that attends, a column the word attended to, and rows sum to 1.
        chosen: the head that rows and pictures show by default.
        run: the run's name.
    """

    text: str
    words: tuple[str, ...]
    spans: tuple[tuple[int, int], ...]
    weights: NDArray[np.float32]
    chosen: Head | None
    run: str

    @property
    def axes(self) -> dict[str, tuple[int, ...] | tuple[str, ...]]:
        """The labels of the four axes of `weights`, in their order."""
        layers, heads = self.weights.shape[:2]
        return {"layer": tuple(range(layers)), "head": tuple(range(heads)), "from": self.words, "to": self.words}

    def map(self, layer: int | None = None, head: int | None = None) -> NDArray[np.float32]:
        """(W, W): one head's map; by default the chosen head's."""
        requested = self._head(layer, head)
        weights: NDArray[np.float32] = self.weights[requested.layer, requested.head]
        return weights

    def row(self, mention: str | int, layer: int | None = None, head: int | None = None) -> Row:
        """What a word, or a mention of several words, attends to in one head; by default the chosen head.

        Args:
            mention: as the text writes it, its first occurrence; its characters as "start:end"; or one word's position
                in `words`.

        Returns:
            The word's row; of several words (or tokens) the mean of their rows.

        Raises:
            UserError: the mention is not in the text, or there is no such head.
        """
        requested = self._head(layer, head)
        positions = self._positions(mention)
        rows = self.weights[requested.layer, requested.head, positions]
        return Row(self.text, self.words, self.spans, tuple(positions), rows.mean(axis=0), requested)

    def frame(self) -> pandas.DataFrame:
        """Every weight as a row of a table: layer, head, from, to, and the positions of both words."""
        import pandas

        grid = np.indices(self.weights.shape).reshape(4, -1)
        names = np.array(self.words, dtype=object)
        columns = {"layer": grid[0], "head": grid[1], "from_position": grid[2], "to_position": grid[3]}
        return pandas.DataFrame(
            {**columns, "from": names[grid[2]], "to": names[grid[3]], "weight": self.weights.reshape(-1)}
        )

    def plot(self, layer: int | None = None, head: int | None = None, row: str | int | None = None) -> Figure:
        """The heat map of one head; the row of `row`, or the rows where it is a mention of several words, is framed."""
        from anaphora.report.figures.maps import heat_map_figure

        requested = self._head(layer, head)
        title = f"Attention, layer {requested.layer} head {requested.head}"
        return heat_map_figure(self.words, self.map(layer, head), title, None if row is None else self._positions(row))

    def _head(self, layer: int | None, head: int | None) -> Head:
        layers, heads = self.weights.shape[:2]
        return _requested_head(layer, head, self.chosen, layers, heads, self.run)

    def _positions(self, mention: str | int) -> list[int]:
        return _positions_of(mention, self.text, self.words, self.spans)

    def __repr__(self) -> str:
        layers, heads, count, _ = self.weights.shape
        return f"<attention: {layers} layers x {heads} heads x {count} words from x {count} words to: {self.text!r}>"

    def _repr_html_(self) -> str:
        if self.chosen is None:
            return f"<p>{_escaped(repr(self))}</p>"
        return _table(self.words, self.map(), f"layer {self.chosen.layer}, head {self.chosen.head}")


@dataclass(frozen=True, eq=False)
class Row:
    """What one word, or one mention of several words, attends to in one head.

    Attributes:
        text: the sentence.
        words: W words.
        spans: their W character spans.
        positions: which of them attend.
        weights: (W,), summing to 1; the mean of the rows of `positions`.
        head: layer and head.
    """

    text: str
    words: tuple[str, ...]
    spans: tuple[tuple[int, int], ...]
    positions: tuple[int, ...]
    weights: NDArray[np.float32]
    head: Head

    @property
    def word(self) -> str:
        """The word or words that attend, as the text writes them."""
        first, last = self.positions[0], self.positions[-1]
        return self.words[first] if first == last else self.text[self.spans[first][0] : self.spans[last][1]]

    def to(self, mention: str | int) -> float:
        """The weight on a word, or on a mention of several words: the sum over them.

        Args:
            mention: named as in `Attention.row`.

        Raises:
            UserError: the mention is not in the text.
        """
        return float(self.weights[_positions_of(mention, self.text, self.words, self.spans)].sum())

    def top(self, count: int = 3) -> list[tuple[str, float]]:
        """The words with most weight, heaviest first; of equal ones the earlier."""
        order = np.argsort(-self.weights, kind="stable")[:count]
        return [(self.words[position], float(self.weights[position])) for position in order]

    def plot(self) -> Figure:
        """The sentence with a bar for the weight of every word."""
        from anaphora.report.figures.maps import pronoun_row_figure

        title = f"What “{self.word}” attends to, layer {self.head.layer} head {self.head.head}"
        return pronoun_row_figure(self.words, self.weights, self.positions, [], [], title)

    def __repr__(self) -> str:
        heaviest = ", ".join(f"{word} {weight:.2f}" for word, weight in self.top())
        return f"<{self.word!r} attends to: {heaviest} (layer {self.head.layer}, head {self.head.head})>"

    def _repr_html_(self) -> str:
        title = f"{self.word}: layer {self.head.layer}, head {self.head.head}"
        return _table(self.words, self.weights[None], title, (self.word,))


def _positions_of(mention: str | int, text: str, words: Sequence[str], spans: Sequence[tuple[int, int]]) -> list[int]:
    """The words of a mention by their positions, in text order."""
    if isinstance(mention, int):
        if not 0 <= mention < len(words):
            raise UserError(f"word ({mention}) must be a position from 0 to {len(words) - 1}")
        return [mention]
    if mention in words:
        return [words.index(mention)]
    from anaphora.data.own_sentence import find_span

    start, end = find_span(text, mention, "word")
    positions = [position for position, (left, right) in enumerate(spans) if left < end and start < right]
    if not positions:
        raise UserError(f"word ({mention}) covers no word of the text {text!r}")
    return positions


def _requested_head(
    layer: int | None, head: int | None, chosen: Head | None, layers: int, heads: int, run: str
) -> Head:
    """The requested head; a layer or head that is None is the chosen one's."""
    if chosen is None and (layer is None or head is None):
        raise UserError(
            f"run {run}: no head has been chosen yet; give layer= and head=, "
            "or choose one with scripts/score_attention.py"
        )
    requested = Head(
        chosen.layer if layer is None and chosen is not None else int(layer or 0),
        chosen.head if head is None and chosen is not None else int(head or 0),
    )
    for name, value, count in (("layer", requested.layer, layers), ("head", requested.head, heads)):
        if not 0 <= value < count:
            raise UserError(f"{name} ({value}) must be from 0 to {count - 1}")
    return requested


def _word_spans(spans: Sequence[tuple[int, int]], words: Sequence[int]) -> list[tuple[int, int]]:
    """The characters of every word; a special token stays one of its own."""
    merged: dict[int, tuple[int, int]] = {}
    for position, (span, word) in enumerate(zip(spans, words, strict=True)):
        key = word if word >= 0 else -1 - position
        merged[key] = (merged[key][0], span[1]) if key in merged else span
    return list(merged.values())


_MAX_TABLE_WORDS = 24
"""Words that a table in a notebook has at most; a picture shows all."""


def _table(words: Sequence[str], weights: NDArray[np.float32], title: str, rows: Sequence[str] | None = None) -> str:
    """A small table in the colours of the figures; text is escaped."""
    from anaphora.report.page.offline import weight_colours

    colours = weight_colours()
    columns = list(words)[:_MAX_TABLE_WORDS]
    lines = []
    for name, line in zip(columns if rows is None else rows, weights[:_MAX_TABLE_WORDS], strict=False):
        cells = []
        for weight in line[:_MAX_TABLE_WORDS]:
            shade = round(63 * min(1.0, float(weight)))
            ink = "#fff" if colours["light"][shade] else "#000"
            style = f"background:{colours['ramp'][shade]};color:{ink};text-align:center"
            cells.append(f'<td style="{style}">{weight:.2f}</td>')
        lines.append(f"<tr><th>{_escaped(name)}</th>{''.join(cells)}</tr>")
    head = "".join(f"<th>{_escaped(word)}</th>" for word in columns)
    more = "" if len(words) <= _MAX_TABLE_WORDS else f" (the first {_MAX_TABLE_WORDS} of {len(words)} words)"
    return f"<table><caption>{_escaped(title + more)}</caption><tr><th></th>{head}</tr>{''.join(lines)}</table>"


def _escaped(text: str) -> str:
    from html import escape

    return escape(text)

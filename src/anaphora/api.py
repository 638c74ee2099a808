"""What a notebook needs: open a run, look at a sentence, read a row, draw it.

    run = anaphora.load("outputs/demo")
    seen = run.attention("Anna was helped by Emma because she was very weak.")
    seen.row("she").top(3)

L layers, H heads, W words (or tokens). Layers and heads are counted from 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from anaphora import checkpoint
from anaphora.analysis.capture import text_maps, whole_maps
from anaphora.analysis.scores import Head
from anaphora.analysis.settings import Analysis
from anaphora.analysis.words import SPECIAL, word_map
from anaphora.data.example import Example
from anaphora.errors import UserError
from anaphora.model.settings import check_length, heads_of
from anaphora.place import Place
from anaphora.question import example_of

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure

    from anaphora.explain.walk import Walk

_UNITS = ("word", "token")


def load(directory: str | Path, device: str = "cpu") -> OpenRun:
    """Open a finished run, its model on "cpu" or "cuda".

    Raises:
        UserError: the directory holds none, the training has not finished, a file is broken, or the device is not
            there.
    """
    if device not in ("cpu", "cuda"):
        raise UserError(f"device ({device!r}) must be one of cpu, cuda")
    return OpenRun(checkpoint.load(directory, Place(device=device)))


class OpenRun:
    """A trained run that can be asked about sentences."""

    def __init__(self, run: checkpoint.Run) -> None:
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
    def chosen(self) -> Head | None:
        """The head that was chosen on the development split, or None if scores were never taken."""
        from anaphora.workflow import read_scores

        head = read_scores(self.run.directory, "test").get("head")
        return None if head is None else Head(int(head["layer"]), int(head["head"]))

    def attention(
        self, text: str, pronoun: str | None = None, candidates: Sequence[str] = (), by: str = "word"
    ) -> Attention:
        """The attention of every layer and head in one text.

        Args:
            text: English or Chinese.
            pronoun: a word of the text, or its characters as "start:end"; needed only with candidates.
            candidates: what it may mean; models that read candidates' marks are then shown them.
            by: "word" merges the pieces of split words (summed to, averaged from), "token" does not.

        Raises:
            UserError: a word is not in the text, or the text does not fit the model.
        """
        if by not in _UNITS:
            raise UserError(f"by ({by!r}) must be one of {', '.join(_UNITS)}")
        example = self._example(text, pronoun, candidates)
        resolver, tokenizer = self.run.resolver, self.run.tokenizer
        check_length(self.run.config.model, len(tokenizer.encode(text).ids))
        if example is None:
            tokens, maps = text_maps(resolver, tokenizer, text)
        else:
            tokens, maps = whole_maps(resolver, tokenizer, example, self.run.config.task.readout)
        spans = list(tokens.spans)
        if by == "word":
            maps = word_map(maps, tokens.words)
            spans = _word_spans(tokens.spans, tokens.words)
        words = tuple(text[start:end] if start < end else SPECIAL for start, end in spans)
        return Attention(text, words, tuple(spans), maps, self.chosen, self.name)

    def answer(self, text: str, pronoun: str, candidates: Sequence[str]) -> str | None:
        """The candidate that the model names, or None for "none of them".

        Raises:
            UserError: a word is not in the text, or the run was trained without a read-out.
        """
        from anaphora.analysis.capture import seen_by

        example = self._example(text, pronoun, candidates)
        if example is None or not example.candidates:
            raise UserError("an answer needs a pronoun and its candidates")
        answer = int(seen_by(self.run, [example]).answers[0])
        if answer == -2:
            raise UserError("this run was trained without a read-out (task.readout=no_readout): it answers nothing")
        return None if answer == -1 else example.words(answer)

    def explain(
        self,
        text: str,
        pronoun: str | None = None,
        candidates: Sequence[str] = (),
        layer: int | None = None,
        head: int | None = None,
        language: str | None = None,
    ) -> Walk:
        """The walk-through of one head, as scripts/explain.py shows it; the numbers stand in its steps' matrices."""
        from anaphora.explain.encoding import Sentence, walk
        from anaphora.explain.phrases import Phrases
        from anaphora.question import language_of

        place = _which(layer, head, self.chosen, self.layers, self.heads, self.name)
        words = Phrases(language or language_of(text))
        return walk(
            self.run, Sentence(text, self._example(text, pronoun, candidates)), place.layer, place.head, None, words
        )

    def _example(self, text: str, pronoun: str | None, candidates: Sequence[str]) -> Example | None:
        if pronoun is None:
            if candidates:
                raise UserError("candidates go with a pronoun")
            return None
        return example_of(Analysis(text=text, pronoun=pronoun, candidates=list(candidates)))

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
        place = self._place(layer, head)
        chosen: NDArray[np.float32] = self.weights[place.layer, place.head]
        return chosen

    def row(self, word: str | int, layer: int | None = None, head: int | None = None) -> Row:
        """What one word attends to in one head; by default the chosen head.

        Args:
            word: as the text writes it, its first occurrence; its characters as "start:end"; or its place in `words`.

        Raises:
            UserError: the word is not in the text, or there is no such head.
        """
        place = self._place(layer, head)
        number = self._number(word)
        return Row(self.words, number, self.weights[place.layer, place.head, number], place)

    def frame(self) -> pandas.DataFrame:
        """Every weight as a row of a table: layer, head, from, to, and the places of both words."""
        import pandas

        grid = np.indices(self.weights.shape).reshape(4, -1)
        names = np.array(self.words, dtype=object)
        columns = {"layer": grid[0], "head": grid[1], "from_place": grid[2], "to_place": grid[3]}
        return pandas.DataFrame(
            {**columns, "from": names[grid[2]], "to": names[grid[3]], "weight": self.weights.reshape(-1)}
        )

    def plot(self, layer: int | None = None, head: int | None = None, row: str | int | None = None) -> Figure:
        """The heat map of one head; the row of `row` is framed."""
        from anaphora.report.figures import heat_map

        place = self._place(layer, head)
        title = f"Attention, layer {place.layer} head {place.head}"
        return heat_map(self.words, self.map(layer, head), title, None if row is None else self._number(row))

    def _place(self, layer: int | None, head: int | None) -> Head:
        layers, heads = self.weights.shape[:2]
        return _which(layer, head, self.chosen, layers, heads, self.run)

    def _number(self, word: str | int) -> int:
        if isinstance(word, int):
            if not 0 <= word < len(self.words):
                raise UserError(f"word ({word}) must be a place from 0 to {len(self.words) - 1}")
            return word
        if word in self.words:
            return self.words.index(word)
        from anaphora.question import find

        start, end = find(self.text, word, "word")
        return next(place for place, (left, right) in enumerate(self.spans) if left < end and start < right)

    def __repr__(self) -> str:
        layers, heads, count, _ = self.weights.shape
        return f"<attention: {layers} layers x {heads} heads x {count} words from x {count} words to: {self.text!r}>"

    def _repr_html_(self) -> str:
        if self.chosen is None:
            return f"<p>{_escaped(repr(self))}</p>"
        return _table(self.words, self.map(), f"layer {self.chosen.layer}, head {self.chosen.head}")


@dataclass(frozen=True, eq=False)
class Row:
    """What one word attends to in one head.

    Attributes:
        words: W words.
        place: which of them attends.
        weights: (W,), summing to 1.
        head: layer and head.
    """

    words: tuple[str, ...]
    place: int
    weights: NDArray[np.float32]
    head: Head

    @property
    def word(self) -> str:
        """The word that attends."""
        return self.words[self.place]

    def top(self, count: int = 3) -> list[tuple[str, float]]:
        """The words with most weight, heaviest first; of equal ones the earlier."""
        order = np.argsort(-self.weights, kind="stable")[:count]
        return [(self.words[place], float(self.weights[place])) for place in order]

    def plot(self) -> Figure:
        """The sentence with a bar for the weight of every word."""
        from anaphora.report.figures import pronoun_row

        title = f"What “{self.word}” attends to, layer {self.head.layer} head {self.head.head}"
        return pronoun_row(self.words, self.weights, self.place, [], [], title)

    def __repr__(self) -> str:
        told = ", ".join(f"{word} {weight:.2f}" for word, weight in self.top())
        return f"<{self.word!r} attends to: {told} (layer {self.head.layer}, head {self.head.head})>"

    def _repr_html_(self) -> str:
        title = f"{self.word}: layer {self.head.layer}, head {self.head.head}"
        return _table(self.words, self.weights[None], title, (self.word,))


def _which(layer: int | None, head: int | None, chosen: Head | None, layers: int, heads: int, run: str) -> Head:
    """The head that is asked for, what is not said being taken from the chosen one."""
    if chosen is None and (layer is None or head is None):
        raise UserError(
            f"run {run}: no head has been chosen yet; give layer= and head=, "
            "or choose one with scripts/score_attention.py"
        )
    found = Head(
        chosen.layer if layer is None and chosen is not None else int(layer or 0),
        chosen.head if head is None and chosen is not None else int(head or 0),
    )
    for name, value, count in (("layer", found.layer, layers), ("head", found.head, heads)):
        if not 0 <= value < count:
            raise UserError(f"{name} ({value}) must be from 0 to {count - 1}")
    return found


def _word_spans(spans: Sequence[tuple[int, int]], words: Sequence[int]) -> list[tuple[int, int]]:
    """The characters of every word; a special token stays one of its own."""
    found: dict[int, tuple[int, int]] = {}
    for place, (span, word) in enumerate(zip(spans, words, strict=True)):
        key = word if word >= 0 else -1 - place
        found[key] = (found[key][0], span[1]) if key in found else span
    return list(found.values())


_SHOWN = 24
"""Words that a table in a notebook has at most; a picture shows all."""


def _table(words: Sequence[str], weights: NDArray[np.float32], title: str, rows: Sequence[str] | None = None) -> str:
    """A small table in the colours of the figures; text is escaped."""
    from anaphora.report.offline import ramp

    colours = ramp()
    few = list(words)[:_SHOWN]
    lines = []
    for name, line in zip(few if rows is None else rows, weights[:_SHOWN], strict=False):
        cells = []
        for weight in line[:_SHOWN]:
            step = round(63 * min(1.0, float(weight)))
            ink = "#fff" if colours["light"][step] else "#000"
            style = f"background:{colours['ramp'][step]};color:{ink};text-align:center"
            cells.append(f'<td style="{style}">{weight:.2f}</td>')
        lines.append(f"<tr><th>{_escaped(name)}</th>{''.join(cells)}</tr>")
    head = "".join(f"<th>{_escaped(word)}</th>" for word in few)
    more = "" if len(words) <= _SHOWN else f" (the first {_SHOWN} of {len(words)} words)"
    return f"<table><caption>{_escaped(title + more)}</caption><tr><th></th>{head}</tr>{''.join(lines)}</table>"


def _escaped(text: str) -> str:
    from html import escape

    return escape(text)

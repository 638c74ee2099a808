"""Maps with labelled axes: the attention in one text, by layer and head.

L layers, H heads, W words (or tokens). Layers and heads are counted from 0. Everywhere the weight to several tokens or
words is the sum of their weights, and the weight from them the mean of their rows (Clark et al. 2019, section 4.1).
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from anaphora.analysis.maps.words import attending_layers, word_map
from anaphora.analysis.results.scores import Head
from anaphora.api.html import AttentionPage, weight_table
from anaphora.api.row import Row, marked_words, positions_of, requested_head, text_units
from anaphora.base.checks import PAGE_ENDINGS, at_least, file_ending, file_name, one_of, whole_number
from anaphora.base.errors import UserError
from anaphora.base.language import LANGUAGES
from anaphora.base.locale.translation import _, spoken_in
from anaphora.data.example import Example, overlapping
from anaphora.data.tokens.own_words import with_own_words
from anaphora.data.tokens.tokenizer import TokenizedText

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure

    from anaphora.report.page.elements import TableElement

MOST_PLOTTED_WORDS = 100
"""Words that a heat map on paper has room for."""


class HeadWeight(NamedTuple):
    """One entry of `SentenceAttention.rank`: a `layer` and a `head`, both counted from 0, and its `weight`."""

    layer: int
    head: int
    weight: float


@dataclass(frozen=True, eq=False)
class SentenceAttention:
    """The attention of a model in one text, with labelled axes; `np.asarray` gives its weights, (L, H, W, W).

    Attributes:
        text: the text.
        words: the W words, or tokens, of the text; special tokens have the names that the model's vocabulary gives
            them, such as [CLS].
        spans: for each of the W words, where its characters start and end in the text; (0, 0) for a special token.
        weights: (L, H, W, W): in the map of each head, a row belongs to the word that attends and a column to the word
            that is attended to. Rows sum to 1. In a layer without attention all weights are 0; `rank`, `row`, `frame`
            and pages leave such layers out.
        chosen: the head that rows and pictures show by default; None if no head was chosen on a development split.
        model: the name of the run or model.
        is_decoder: whether the model is a decoder, in which no word attends to the words that follow it.
        example: the pronoun and its candidates, if they were given.
        unread: the parts of the text that the model's vocabulary does not have. The model reads its unknown token
            there, or nothing, so weights on them say little.
        second_start: of a pair of texts, which are one string in `text`, where the second one starts; None if there is
            one text.
    """

    text: str
    words: tuple[str, ...]
    spans: tuple[tuple[int, int], ...]
    weights: NDArray[np.float32]
    chosen: Head | None
    model: str
    is_decoder: bool = False
    example: Example | None = None
    unread: tuple[str, ...] = ()
    second_start: int | None = None

    @property
    def segments(self) -> tuple[int, ...]:
        """Return which text of a pair each word is of, 0 or 1; a special token is of the text before it.

        With one text all words are of text 0.
        """
        segments: list[int] = []
        for start, end in self.spans:
            is_second = start < end and self.second_start is not None and start >= self.second_start
            segments.append(int(is_second) if start < end else segments[-1] if segments else 0)
        return tuple(segments)

    @property
    def axes(self) -> dict[str, tuple[int, ...] | tuple[str, ...]]:
        """Return the labels of the four axes of `weights`, in order: layer, head, from, to."""
        layers, heads = self.weights.shape[:2]
        return {"layer": tuple(range(layers)), "head": tuple(range(heads)), "from": self.words, "to": self.words}

    def map(self, layer: int | None = None, head: int | None = None) -> NDArray[np.float32]:
        """Return the map of one head, (W, W).

        Args:
            layer: the number of the layer, from 0; by default that of the chosen head.
            head: the number of the head in its layer, from 0; by default that of the chosen head.

        Raises:
            UserError: there is no such head, or no head was chosen and none is given.
        """
        requested = self._head(layer, head)
        weights: NDArray[np.float32] = self.weights[requested.layer, requested.head]
        return weights

    def row(self, mention: str | int, layer: int | None = None, head: int | None = None) -> Row:
        """Return what a word, or a mention of several words, attends to in one head.

        Args:
            mention: the word or mention as it stands in the text (the first occurrence; "it:2" is the second "it"), its
                characters as "start:end", or the position of one word in `words`.
            layer: the number of the layer, from 0; by default that of the chosen head.
            head: the number of the head in its layer, from 0; by default that of the chosen head.

        Returns:
            The row of the word; for several words or tokens, the mean of their rows.

        Raises:
            UserError: the mention is not in the text, there is no such head, or no head was chosen and none is given.
        """
        requested = self._head(layer, head)
        positions = self._positions(mention)
        rows = self.weights[requested.layer, requested.head, positions]
        return Row(self.text, self.words, self.spans, tuple(positions), rows.mean(axis=0), requested, self.example)

    def rank(self, attending: str | int, attended: str | int) -> list[HeadWeight]:
        """Return all heads, sorted by the weight that one mention gives to another, largest first.

        Heads with equal weights keep their order.

        Args:
            attending: the mention that attends, given as in `row`; the rows of several words are averaged.
            attended: the mention that is attended to, given in the same way; the weights on several words are summed.

        Raises:
            UserError: a mention is not in the text.
        """
        return self._ranked(self._positions(attending), self._positions(attended))

    def _ranked(self, rows: list[int], columns: list[int]) -> list[HeadWeight]:
        """Sort all heads by the weight from some words to others, both given by their positions."""
        mass = self.weights[:, :, rows][..., columns].mean(axis=2).sum(axis=-1)  # (L, H)
        heads = self.weights.shape[1]
        order = np.argsort(-mass.reshape(-1), kind="stable")
        order = order[np.isin(order // heads, self._attending_layers())]
        return [HeadWeight(int(place) // heads, int(place) % heads, float(mass.flat[place])) for place in order]

    def without_special(self) -> SentenceAttention:
        """Return the maps without special tokens; the rest of each row is rescaled so that the row keeps its sum."""
        kept = [place for place, (start, end) in enumerate(self.spans) if start < end]
        rest = self.weights[:, :, kept][..., kept]
        whole = self.weights[:, :, kept].sum(axis=-1, keepdims=True)
        left = rest.sum(axis=-1, keepdims=True)
        scaled = np.divide(rest * whole, left, out=np.zeros_like(rest), where=left > 0)
        words, spans = tuple(self.words[place] for place in kept), tuple(self.spans[place] for place in kept)
        return replace(self, words=words, spans=spans, weights=scaled)

    def between(self, attending: int, attended: int) -> SentenceAttention:
        """Return the maps with the weights from one text of a pair to the other, or to itself; other weights are 0.

        Args:
            attending: the text whose words attend, 0 for the first and 1 for the second.
            attended: the text whose words are attended to.

        Raises:
            UserError: the maps are of one text, or a number is neither 0 nor 1.
        """
        if self.second_start is None:
            raise UserError("between: these maps are of one text; anaphora.attention(..., second=...) reads a pair")
        for name, number in (("attending", attending), ("attended", attended)):
            if number not in (0, 1):
                raise UserError(f"{name} ({number!r}) must be 0, the first text, or 1, the second")
        segments = np.array(self.segments)
        kept = (segments == attending)[:, None] & (segments == attended)
        return replace(self, weights=np.where(kept, self.weights, np.float32(0)))

    def window(self, mention: str | int, around: int = 20) -> SentenceAttention:
        """Return the part of the maps around a mention, for instance for a picture of a long text.

        The weights stay as they are, so that rows can sum to less than 1.

        Args:
            mention: the word or mention, given as in `SentenceAttention.row`.
            around: how many words to keep before and after the mention.

        Raises:
            UserError: the mention is not in the text, or `around` is negative or no whole number.
        """
        at_least("around", whole_number("around", around), 0)
        positions = self._positions(mention)
        part = slice(max(0, positions[0] - around), positions[-1] + around + 1)
        return replace(
            self, words=self.words[part], spans=self.spans[part], weights=self.weights[:, :, part, part], example=None
        )

    def save(self, path: str | Path) -> Path:
        """Write the rows of all words to a Parquet file with the columns of scripts/extract.py.

        The text, which is item 0 there, is written to a second file next to it as JSON lines (`<stem>_items.jsonl`).
        Special tokens are among the words attended to, but have no rows of their own.

        Args:
            path: the file to write, whose name must end in .parquet.

        Returns:
            The path of the Parquet file.

        Raises:
            UserError: the path does not end in .parquet.
        """
        from anaphora.analysis.maps.rows import QueryRow, attention_file
        from anaphora.base.language import language_of

        path = file_name("path", path)
        file_ending("path", path, ".parquet")
        rows = [
            QueryRow(0, span, self.spans, self.weights[:, :, place])
            for place, span in enumerate(self.spans)
            if span[0] < span[1]
        ]
        with attention_file(path) as file:
            file.write(rows, [{"item": 0, "text": self.text, "language": language_of(self.text)}])
        return path

    def page(self, path: str | Path | None = None, language: str = "en") -> AttentionPage:
        """Write the maps of every layer and head as one HTML file, which needs no other file and no network.

        Args:
            path: the file to write, whose name must end in .html; by default a file in a new temporary folder.
            language: the language of the page, "en" or "zh".

        Raises:
            UserError: the path does not end in .html, or there is no such language.
        """
        from anaphora.report.page.explorer import attention_entry
        from anaphora.report.page.write import write_attention_page

        one_of("language", language, LANGUAGES)
        if path is None:
            path = Path(tempfile.mkdtemp(prefix="anaphora-")) / "attention.html"
        written = file_name("path", path)
        file_ending("path", written, *PAGE_ENDINGS)
        entry = attention_entry(self.text, self.words, self.spans, self.weights, self.example)
        if self.second_start is not None:
            entry["segments"] = list(self.segments)
        with spoken_in(language):
            decoder = self._beside_the_last_word() if self.is_decoder else None
            write_attention_page(written, entry, self.chosen, decoder, self.unread)
        return AttentionPage(written)

    def _beside_the_last_word(self) -> TableElement:
        """Return the heaviest head from the pronoun to each candidate, and from the last word, which sees them all."""
        from anaphora.report.page.elements import TableElement

        hidden = _("not visible")
        rows: list[list[str]] = []
        candidates = self.example.candidates if self.example else ()
        if self.example is not None and candidates:
            last = max(place for place, (start, end) in enumerate(self.spans) if start < end)
            start, end = self.example.pronoun
            pronoun = overlapping(self.spans, (start, end))
            for word, attending in ((self.text[start:end], pronoun), (self.words[last], [last])):
                heaviest = [self._ranked(attending, overlapping(self.spans, spans[0]))[0] for spans in candidates]
                cells = [f"{one.layer}.{one.head}  {one.weight:.2f}" if one.weight > 0 else hidden for one in heaviest]
                rows.append([word, *cells])
        names = [self.example.words(number) for number in range(len(candidates))] if self.example else []
        return TableElement(
            title=_("The heaviest head to each candidate, as layer.head"),
            columns=[_("from"), *(_("to {candidate}").format(candidate=name) for name in names)],
            rows=rows,
        )

    def frame(self) -> pandas.DataFrame:
        """Return a table with one row per weight: layer and head, both words (`from`, `to`) and their positions.

        Layers without attention have no rows.
        """
        import pandas

        layers = self._attending_layers()
        weights = self.weights[layers]
        grid = np.indices(weights.shape).reshape(4, -1)
        names = np.array(self.words, dtype=object)
        columns = {
            "layer": np.array(layers)[grid[0]],
            "head": grid[1],
            "from_position": grid[2],
            "to_position": grid[3],
        }
        return pandas.DataFrame(
            {**columns, "from": names[grid[2]], "to": names[grid[3]], "weight": weights.reshape(-1)}
        )

    def plot(self, layer: int | None = None, head: int | None = None, row: str | int | None = None) -> Figure:
        """Return a heat map of one head, with a frame around the row of one mention.

        If the framed row is the pronoun's, the candidates are marked too.

        Args:
            layer: the number of the layer, from 0; by default that of the chosen head.
            head: the number of the head in its layer, from 0; by default that of the chosen head.
            row: the mention whose row is framed (or whose rows, if it has several words), given as in `row`;
                by default the pronoun, if it was given.

        Raises:
            UserError: the text has more than 100 words (`MOST_PLOTTED_WORDS`), the mention is not in it, there is no
                such head, or no head was chosen and none is given.
        """
        from anaphora.report.figures.maps import heat_map_figure
        from anaphora.report.titles import attention_title
        from anaphora.report.wording import head_name

        if len(self.words) > MOST_PLOTTED_WORDS:
            raise UserError(
                f"plot: {len(self.words)} words do not fit in one picture, which takes {MOST_PLOTTED_WORDS}; use "
                "window(mention) for the part around a mention, or page() for all"
            )
        requested = self._head(layer, head)
        framed = None if row is None else self._positions(row)
        if row is None and self.example is not None:
            framed = overlapping(self.spans, self.example.pronoun)
        right, others, attending = marked_words(framed, self.example, self.spans)
        weights = self.map(layer, head)
        if framed is None:
            title = _("Attention, {head}").format(head=head_name(requested.layer, requested.head))
        else:
            title = attention_title(self.words, weights[framed].mean(axis=0), framed, right, others, requested)
        return heat_map_figure(self.words, weights, title, framed, right, others, attending)

    def _head(self, layer: int | None, head: int | None) -> Head:
        return requested_head(layer, head, self.chosen, self._attending_layers(), self.weights.shape[1], self.model)

    def _attending_layers(self) -> list[int]:
        return attending_layers(self.weights)

    def _positions(self, mention: str | int) -> list[int]:
        return positions_of(mention, self.text, self.words, self.spans)

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.weights, dtype=dtype, copy=copy)

    def __repr__(self) -> str:
        layers, heads, count, _ = self.weights.shape
        unread = f"; not in the vocabulary: {', '.join(self.unread)}" if self.unread else ""
        size = f"{layers} layers x {heads} heads x {count} words from x {count} words to"
        return f"<attention: {size}: {self.text!r}{unread}>"

    def _repr_html_(self) -> str:
        if self.chosen is None:
            return f"<p>{escape(repr(self))}</p>"
        return weight_table(self.words, self.map(), f"layer {self.chosen.layer}, head {self.chosen.head}")


def labelled_attention(
    text: str,
    tokens: TokenizedText,
    maps: NDArray[np.float32],
    *,
    by: str,
    model: str,
    own_words: str | Sequence[str] | None = None,
    chosen: Head | None = None,
    is_decoder: bool = False,
    example: Example | None = None,
) -> SentenceAttention:
    """Return the maps of a text, (L, H, T, T), by word, where the user may give the words, or by token.

    Raises:
        UserError: `by` is neither, words are given by token, or they do not fit the text or its tokens.
    """
    if own_words is not None:
        if by != "word":
            raise UserError(f"words and by ({by!r}) do not go together: words merge the tokens, with by='word'")
        tokens = with_own_words(text, tokens, own_words)
    words, spans, _ = text_units(text, tokens, by)
    if by == "word":
        maps = word_map(maps, tokens.words)
    unread = tuple(dict.fromkeys(text[start:end] for start, end in tokens.unread))
    return SentenceAttention(text, words, spans, maps, chosen, model, is_decoder, example, unread)

"""Attention maps of one text with labelled axes.

Axes are L (layers), H (heads) and W (words or tokens). Layers and heads are counted from 0. Attention weights on
several words or tokens are summed, and their rows are averaged (Clark et al. 2019, section 4.1).
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
from anaphora.api.row import Row, check_apart, marked_words, positions_of, requested_head, text_units
from anaphora.base.checks import PAGE_ENDINGS, at_least, file_ending, file_name, one_of, whole_number
from anaphora.base.errors import UserError
from anaphora.base.language import LANGUAGES
from anaphora.base.translation import _, pgettext, spoken_in
from anaphora.data.example import Example, overlapping
from anaphora.data.own_sentence import distinct_names
from anaphora.data.tokens.tokenizer import TokenizedText
from anaphora.data.tokens.words import with_own_words

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure

    from anaphora.report.page.elements import TableElement

MOST_PLOTTED_WORDS = 100
"""Maximum number of words in a heat map."""


class HeadWeight(NamedTuple):
    """Head (`layer` and `head`, counted from 0) and its attention weight, as returned by `SentenceAttention.rank`."""

    layer: int
    head: int
    weight: float


@dataclass(frozen=True, eq=False)
class SentenceAttention:
    """Attention of a model in one text, with labelled axes; `np.asarray` returns its weights, (L, H, W, W).

    Attributes:
        text: the text.
        words: the W words, or tokens, of the text; special tokens are named as in the model's vocabulary, such as
            [CLS].
        spans: (start, end) character offsets of each word in the text, end excluded; (0, 0) for a special token.
        weights: (L, H, W, W); in each map, rows are query words (which attend) and columns are key words (which are
            attended to). Rows sum to 1, or to less after `between`, `window` and `without_special`. In a layer without
            attention all weights are 0; `rank`, `frame` and pages leave such layers out; `map`, `row` and `plot` raise
            an error for them.
        chosen: default head of rows and figures; None if no head was chosen on a development split.
        model: name of the run or model.
        is_decoder: whether the model is a decoder, in which no word attends to the words after it.
        example: the pronoun and its candidates; None if no pronoun was given or found.
        unread: substrings of the text outside the model's vocabulary. They become unknown tokens or are dropped, so the
            weights on them mean little.
        second_start: character offset in `text` of the second text of a pair; None for a single text.
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
        """Return the segment of each word: 0 for a single text or the first text of a pair, 1 for the second text.

        A special token belongs to the text that precedes it; a special token at the start belongs to the first text.
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
        """Return the attention map of one head, (W, W).

        Args:
            layer: index of the layer, from 0; by default that of the chosen head.
            head: index of the head in its layer, from 0; by default that of the chosen head.

        Raises:
            UserError: the head does not exist, its layer has no attention, or no head is given and none was chosen.
        """
        requested = self._head(layer, head)
        weights: NDArray[np.float32] = self.weights[requested.layer, requested.head]
        return weights

    def row(self, mention: str | int, layer: int | None = None, head: int | None = None) -> Row:
        """Return the attention row of a word, or of a mention of several words, in one head.

        Args:
            mention: the word or mention as in the text (its first occurrence; "it:2" is the second "it"), its
                characters as "start:end", or the index of one word in `words`.
            layer: index of the layer, from 0; by default that of the chosen head.
            head: index of the head in its layer, from 0; by default that of the chosen head.

        Returns:
            The row of the word; for several words or tokens, the mean of their rows.

        Raises:
            UserError: the mention is not in the text, the head does not exist or has no attention, or no head is given
                and none was chosen.
        """
        requested = self._head(layer, head)
        positions = self._positions(mention)
        rows = self.weights[requested.layer, requested.head, positions]
        return Row(self.text, self.words, self.spans, tuple(positions), rows.mean(axis=0), requested, self.example)

    def rank(self, attending: str | int, attended: str | int) -> list[HeadWeight]:
        """Return all heads, sorted by the attention weight from one mention to another, largest first.

        Ties keep the order of layers and heads. Heads of layers without attention are left out.

        Args:
            attending: the mention that attends, given as for `row`; the rows of several words are averaged.
            attended: the mention attended to, given as for `row`; the weights on several words are summed.

        Raises:
            UserError: a mention is not in the text, or both mentions are inside the same word of the map.
        """
        rows, columns = self._positions(attending), self._positions(attended)
        check_apart(attending, attended, [self.words[index] for index in rows if index in columns], self.text)
        return self._ranked(rows, columns)

    def _ranked(self, rows: list[int], columns: list[int]) -> list[HeadWeight]:
        """Return the heads of layers with attention, sorted by their weight from some words to others, largest first.

        `rows` and `columns` are indices of words; the weight is averaged over rows and summed over columns.
        """
        mass = self.weights[:, :, rows][..., columns].mean(axis=2).sum(axis=-1)  # (L, H)
        heads = self.weights.shape[1]
        order = np.argsort(-mass.reshape(-1), kind="stable")
        order = order[np.isin(order // heads, attending_layers(self.weights))]
        return [HeadWeight(int(index) // heads, int(index) % heads, float(mass.flat[index])) for index in order]

    def without_special(self) -> SentenceAttention:
        """Return the attention maps without special tokens; each row is rescaled to the sum that it had before.

        A row with all its weight on special tokens becomes 0.
        """
        kept = [index for index, (start, end) in enumerate(self.spans) if start < end]
        rest = self.weights[:, :, kept][..., kept]
        whole = self.weights[:, :, kept].sum(axis=-1, keepdims=True)
        left = rest.sum(axis=-1, keepdims=True)
        scaled = np.divide(rest * whole, left, out=np.zeros_like(rest), where=left > 0)
        words, spans = tuple(self.words[index] for index in kept), tuple(self.spans[index] for index in kept)
        return replace(self, words=words, spans=spans, weights=scaled)

    def between(self, attending: int, attended: int) -> SentenceAttention:
        """Return a copy in which all weights are 0 except those from one text of a pair to the other, or to itself.

        Args:
            attending: the attending text, 0 for the first and 1 for the second.
            attended: the text attended to, 0 or 1.

        Raises:
            UserError: the maps are of a single text, or an argument is neither 0 nor 1.
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
        """Return the maps restricted to the words near a mention, for instance to plot a long text.

        The weights are not rescaled, so that rows can sum to less than 1. The result has no `example`.

        Args:
            mention: the word or mention, as in `SentenceAttention.row`.
            around: number of words to keep before and after the mention.

        Raises:
            UserError: the mention is not in the text, or `around` is negative or not a whole number.
        """
        at_least("around", whole_number("around", around), 0)
        positions = self._positions(mention)
        part = slice(max(0, positions[0] - around), positions[-1] + around + 1)
        return replace(
            self, words=self.words[part], spans=self.spans[part], weights=self.weights[:, :, part, part], example=None
        )

    def save(self, path: str | Path) -> Path:
        """Write the attention rows of all words to a Parquet file with the columns of the command `anaphora extract`.

        The text is written to `<stem>_items.jsonl` in the same folder, as item 0. The rows of special tokens are left
        out, but the rows of words include the weights on special tokens.

        Args:
            path: file to write; its name must end in .parquet.

        Returns:
            Path of the Parquet file.

        Raises:
            UserError: the path does not end in .parquet, or `<stem>_items.jsonl` exists without the Parquet file.
        """
        from anaphora.analysis.maps.rows import QueryRow, attention_file
        from anaphora.base.language import language_of

        path = file_name("path", path)
        file_ending("path", path, ".parquet")
        rows = [
            QueryRow(0, span, self.spans, self.weights[:, :, index])
            for index, span in enumerate(self.spans)
            if span[0] < span[1]
        ]
        with attention_file(path) as write_rows:
            write_rows(rows, [{"item": 0, "text": self.text, "language": language_of(self.text)}])
        return path

    def page(self, path: str | Path | None = None, language: str = "en") -> AttentionPage:
        """Write the maps of all layers and heads as a self-contained HTML file.

        Args:
            path: file to write; its name must end in .html or .htm. By default a file in a new temporary folder.
            language: language of the page, "en" or "zh".

        Raises:
            UserError: the path has another ending, the language is not supported, or the text is too long for a page.
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
            decoder = self._last_word_table() if self.is_decoder else None
            write_attention_page(written, entry, self.chosen, decoder, self.unread)
        return AttentionPage(written)

    def _last_word_table(self) -> TableElement:
        """Return a table of the head in which the pronoun, or the last word, attends most to each candidate."""
        from anaphora.report.page.elements import TableElement

        hidden = _("not visible")
        rows: list[list[str]] = []
        names: list[str] = []
        if self.example is not None and (candidates := self.example.candidates):
            names = distinct_names(self.text, [mentions[0] for mentions in candidates])
            last = max(index for index, (start, end) in enumerate(self.spans) if start < end)
            pronoun = overlapping(self.spans, self.example.pronoun)
            for word, attending in ((self.text[slice(*self.example.pronoun)], pronoun), (self.words[last], [last])):
                heaviest = [self._ranked(attending, overlapping(self.spans, spans[0]))[0] for spans in candidates]
                cells = [f"{one.layer}.{one.head}  {one.weight:.2f}" if one.weight > 0 else hidden for one in heaviest]
                rows.append([word, *cells])
        return TableElement(
            title=_("The head with most weight on each candidate, as layer.head"),
            columns=[_("from"), *(_("to {candidate}").format(candidate=name) for name in names)],
            rows=rows,
        )

    def frame(self) -> pandas.DataFrame:
        """Return a table with one row per weight; layers without attention have no rows.

        The columns are `layer`, `head`, `from_position`, `to_position` (indices in `words`, from 0), the words `from`
        and `to`, and `weight`.
        """
        import pandas

        layers = attending_layers(self.weights)
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

        If the pronoun's row is framed, the candidates are marked too.

        Args:
            layer: index of the layer, from 0; by default that of the chosen head.
            head: index of the head in its layer, from 0; by default that of the chosen head.
            row: mention whose rows are framed, given as for the method `row`; by default the pronoun, if there is one.

        Raises:
            UserError: the text has more than 100 words (`MOST_PLOTTED_WORDS`), the mention is not in the text, the head
                does not exist or has no attention, or no head is given and none was chosen.
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
        return requested_head(
            layer, head, self.chosen, attending_layers(self.weights), self.weights.shape[1], self.model
        )

    def _positions(self, mention: str | int) -> list[int]:
        return positions_of(mention, self.text, self.words, self.spans)

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.weights, dtype=dtype, copy=copy)

    def __repr__(self) -> str:
        layers, heads, count = self.weights.shape[:3]
        listed = pgettext("list", ", ").join(self.unread)
        unread = _("; not in the vocabulary: {words}").format(words=listed) if self.unread else ""
        return _(
            "<attention: {layers:layer|layers} x {heads:head|heads} x {count:word|words} from x {count:word|words} "
            "to: {text!r}{unread}>"
        ).format(layers=layers, heads=heads, count=count, text=self.text, unread=unread)

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
    """Label the axes of attention maps over tokens, (L, H, T, T); if `by` is "word", first merge tokens into words.

    The words are those in `own_words`; by default, they end at spaces and punctuation.

    Raises:
        UserError: `by` is unknown, `own_words` is given with by="token", or the words do not fit the text or tokens.
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

"""Small images of a sentence for TensorBoard: the attention weights from the pronoun, and all attention maps.

Pillow draws them in milliseconds; matplotlib would delay training by half a second per image. The colour scale is
fixed, so that steps can be compared. Captions are in the language of the sentence. In shapes, L is the number of
layers, H of heads, T of tokens and W of words.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from anaphora.analysis.maps.record import AttentionRecord
from anaphora.analysis.maps.words import WordRow, word_map, word_roles, word_weights
from anaphora.base.language import is_right_to_left
from anaphora.base.translation import _, pgettext, spoken_in
from anaphora.data.example import Example, Span
from anaphora.report.figures import style
from anaphora.report.figures.fonts import drawable_text, font_file_of, is_chinese, report_undrawn

_TYPE_SIZE = 15
_SMALL_TYPE_SIZE = 12
"""Font sizes in pixels."""
_MARGIN = 14
_LINE_HEIGHT = 22
_MAX_LABELLED_HEADS = 24
"""Maximum number of heads with their weights printed in the pronoun's rows."""
_MAX_GRID_WIDTH = 1280
"""Width in pixels above which a grid of maps takes smaller cells."""
_CELL_SIZES = (18, 15, 12, 9, 7, 5, 4, 3)
_MIN_LABELLED_CELL = 12
"""Smallest cell in pixels that is labelled with its word."""
_COLOUR_SCALE_WIDTH = 240
"""Width of the colour scale in pixels."""
_TICKS = (0.0, 0.05, 0.2, 0.5, 1.0)
_DASH, _DASH_PERIOD = 5, 8
"""Length of a dash, and distance between the starts of two dashes, in pixels."""
_ROLE_COLOURS = {"pronoun": style.PRONOUN, "antecedent": style.ANTECEDENT, "distractor": style.DISTRACTOR}


@dataclass(frozen=True)
class PngImage:
    """PNG file content with the image size in pixels."""

    width: int
    height: int
    png: bytes


def pronoun_rows_image(record: AttentionRecord, step: int) -> PngImage:
    """Draw the pronoun's attention to every word, one row per head, with the first layer at the top."""
    row = word_weights(record)
    layers, heads, count = row.weights.shape
    phrases = _phrases(record.example.language)
    roles = _roles_by_word(record.example, row)
    written = layers * heads <= _MAX_LABELLED_HEADS
    high, wide = (20, 28) if written else (11, 24)
    label = phrases["head" if written else "short"]
    labels = {at: label.format(layer=at[0], head=at[1]) for at in np.ndindex(layers, heads)}
    left = max(_text_width(text, _SMALL_TYPE_SIZE) for text in labels.values()) + 10
    head_room = max(_column_label_height(word) for word in row.words) + 6
    gap = 6
    title, scale = (phrases[name] for name in (("in percent", "blank") if written else ("rows", "scale")))
    sheet = _ImageSheet(record.example, title, step, left + count * wide, phrases, scale)
    top = sheet.top + head_room
    sheet.set_height(head_room + layers * heads * high + (layers - 1) * gap)
    left += _MARGIN
    for index, word in enumerate(row.words):
        sheet.column(word, left + index * wide + wide // 2, top - 4, _role_colour(roles.get(index)), index in roles)
    below = top
    for layer in range(layers):
        shades = _weight_colours(row.weights[layer])
        begin = below
        for head in range(heads):
            if written or head % 4 == 0:
                sheet.text((_MARGIN, below + high // 2), labels[layer, head], _SMALL_TYPE_SIZE, style.INK, anchor="lm")
            for index in range(count):
                box = (left + index * wide, below, left + (index + 1) * wide - 2, below + high - 2)
                sheet.draw.rectangle(box, fill=tuple(shades[head, index]))
                percent = round(100 * float(row.weights[layer, head, index]))
                if written and percent:
                    ground = tuple(float(part) / 255 for part in shades[head, index])
                    middle = ((box[0] + box[2]) // 2, (box[1] + box[3]) // 2)
                    sheet.text(middle, str(percent), _SMALL_TYPE_SIZE, style.text_colour_on(ground), anchor="mm")
            below += high
        for index, role in roles.items():
            sheet.frame((left + index * wide - 1, begin - 1, left + (index + 1) * wide - 1, below - 1), role)
        below += gap
    return sheet.finished()


def head_maps_image(record: AttentionRecord, maps: NDArray[np.float32], step: int) -> PngImage:
    """Draw the attention maps of all heads, (L, H, queries, keys), in a grid with one row per layer."""
    row = word_weights(record)
    merged = word_map(maps, record.words)
    layers, heads, count = merged.shape[:3]
    phrases = _phrases(record.example.language)
    roles = _roles_by_word(record.example, row)
    beside = max(_text_width(word, _SMALL_TYPE_SIZE) for word in row.words) + 8
    gap = 12
    cell = next(
        (size for size in _CELL_SIZES if beside + heads * (count * size + gap) <= _MAX_GRID_WIDTH), _CELL_SIZES[-1]
    )
    legible = cell >= _MIN_LABELLED_CELL
    left = beside if legible else _text_width("0", _SMALL_TYPE_SIZE) + 10
    over = max(_column_label_height(word) for word in row.words) + 6 if legible else 0
    side = count * cell
    title = _LINE_HEIGHT - 4
    sheet = _ImageSheet(
        record.example, phrases["maps"], step, left + heads * (side + gap) - gap, phrases, phrases["scale"]
    )
    first = sheet.top
    sheet.set_height(over + layers * (title + side + gap) - gap)
    left += _MARGIN
    for head in range(heads):
        for index, word in enumerate(row.words if legible else ()):
            middle = left + head * (side + gap) + index * cell + cell // 2
            sheet.column(word, middle, first + over - 4, _role_colour(roles.get(index)), index in roles)
    longest = phrases["head"].format(layer=layers - 1, head=heads - 1)
    label = phrases["head" if _text_width(longest, _SMALL_TYPE_SIZE) <= side else "short"]
    for layer in range(layers):
        top = first + over + layer * (title + side + gap) + title
        for index, word in enumerate(row.words if legible else ()):
            at = (left - 6, top + index * cell + cell // 2)
            sheet.text(at, word, _SMALL_TYPE_SIZE, _role_colour(roles.get(index)), anchor="rm", bold=index in roles)
        for head in range(heads):
            begin = left + head * (side + gap)
            head_name = label.format(layer=layer, head=head)
            sheet.text((begin, top - title // 2), head_name, _SMALL_TYPE_SIZE, style.MUTED, anchor="lm")
            sheet.image.paste(_map_image(merged[layer, head], cell), (begin, top))
            sheet.draw.rectangle((begin - 1, top - 1, begin + side, top + side), outline=style.HAIRLINE)
            rows = [index for index, role in roles.items() if role == "pronoun"]
            across = (begin - 1, top + rows[0] * cell - 1, begin + side, top + (rows[-1] + 1) * cell)
            sheet.frame(across, "pronoun")
            for index, role in roles.items():
                if role != "pronoun":
                    sheet.frame((begin + index * cell - 1, across[1], begin + (index + 1) * cell, across[3]), role)
    return sheet.finished()


class _ImageSheet:
    """White canvas for an image of a sentence.

    At the top are a heading and the sentence, with pronoun, antecedent and distractors in different colours. At the
    bottom is a colour scale for attention weights.
    """

    def __init__(
        self, example: Example, title: str, step: int, width: int, phrases: Mapping[str, str], scale: str
    ) -> None:
        self._example, self._title, self._phrases, self._scale_text = example, title, phrases, scale
        self._step = phrases["step"].format(step=f"{step:,}")
        heading = _text_width(title, _TYPE_SIZE, bold=True) + 24 + _text_width(self._step, _TYPE_SIZE)
        self._width = max(width, heading, _COLOUR_SCALE_WIDTH + 18 + _text_width(scale, _SMALL_TYPE_SIZE))
        self._lines = _sentence_lines(example, self._width)
        self.top = _MARGIN + _LINE_HEIGHT + len(self._lines) * _LINE_HEIGHT + _LINE_HEIGHT + 6
        self.image = Image.new("RGB", (1, 1))
        self.draw = ImageDraw.Draw(self.image)

    def set_height(self, height: int) -> None:
        """Set the height, in pixels, of the area between the sentence and the colour scale.

        This creates the image and draws the heading, the sentence and the colour scale.
        """
        size = (self._width + 2 * _MARGIN, self.top + height + 2 * _LINE_HEIGHT + 8)
        self.image = Image.new("RGB", size, style.PAPER)
        self.draw = ImageDraw.Draw(self.image)
        self.text((_MARGIN, _MARGIN), self._title, _TYPE_SIZE, style.INK, bold=True)
        self.text((size[0] - _MARGIN, _MARGIN), self._step, _TYPE_SIZE, style.MUTED, anchor="ra")
        below = _MARGIN + _LINE_HEIGHT
        for line in self._lines:
            across = _MARGIN
            for text, role in line:
                self.text((across, below), text, _TYPE_SIZE, _role_colour(role), bold=role is not None)
                begin, across = across, across + _text_width(text, _TYPE_SIZE, role is not None)
                if role in ("antecedent", "distractor"):
                    self._line((begin, below + _TYPE_SIZE + 4), (across - 1, below + _TYPE_SIZE + 4), role)
            below += _LINE_HEIGHT
        across = _MARGIN
        for role in _ROLE_COLOURS:
            self.frame((across, below + 4, across + 20, below + 16), role)
            self.text((across + 27, below + 2), self._phrases[role], _SMALL_TYPE_SIZE, style.MUTED)
            across += 27 + _text_width(self._phrases[role], _SMALL_TYPE_SIZE) + 16
        self._scale(self.top + height + 14)

    def _scale(self, top: int) -> None:
        """Draw the colour scale from 0 to 1 with square-root spacing and ticks in percent."""
        bar = Image.fromarray(_weight_colours(np.linspace(0, 1, _COLOUR_SCALE_WIDTH)[None] ** 2))
        self.image.paste(bar.resize((_COLOUR_SCALE_WIDTH, 10), Image.Resampling.NEAREST), (_MARGIN, top))
        for tick in _TICKS:
            at = _MARGIN + round(tick**0.5 * (_COLOUR_SCALE_WIDTH - 1))
            self.draw.line((at, top + 10, at, top + 13), fill=style.MUTED)
            self.text((at, top + 15), f"{100 * tick:g}", _SMALL_TYPE_SIZE - 1, style.MUTED, anchor="ma")
        self.text(
            (_MARGIN + _COLOUR_SCALE_WIDTH + 18, top + 5), self._scale_text, _SMALL_TYPE_SIZE, style.MUTED, anchor="lm"
        )

    def frame(self, box: tuple[int, int, int, int], role: str) -> None:
        """Draw a frame in the colour of a role, dashed for distractors, so that colour is not the only difference."""
        left, top, right, bottom = box
        for begin, end in (
            ((left, top), (right, top)),
            ((left, bottom - 1), (right, bottom - 1)),
            ((left, top), (left, bottom)),
            ((right - 1, top), (right - 1, bottom)),
        ):
            self._line(begin, end, role)

    def _line(self, begin: tuple[int, int], end: tuple[int, int], role: str) -> None:
        """Draw a line of two pixels' width in the colour of a role, dashed for distractors."""
        (left, top), (right, bottom) = begin, end
        length = max(right - left, bottom - top) + 1
        dash, period = (_DASH, _DASH_PERIOD) if role == "distractor" else (length, length)
        for start in range(0, length, period):
            stop = min(start + dash, length) - 1
            at = (start, 0, stop, 1) if right > left else (0, start, 1, stop)
            box = (left + at[0], top + at[1], left + at[2], top + at[3])
            self.draw.rectangle(box, fill=_ROLE_COLOURS[role])

    def text(
        self, at: tuple[int, int], text: str, size: int, colour: str, anchor: str = "la", bold: bool = False
    ) -> None:
        """Draw text at a point.

        Args:
            at: the point, in pixels.
            text: the text.
            size: font size in pixels.
            colour: colour of the text.
            anchor: position of the point relative to the text, as an anchor of Pillow whose first letter is l, m or r.
            bold: whether the text is bold.
        """
        width = _text_width(text, size, bold)
        left = at[0] - {"l": 0, "m": width // 2, "r": width}[anchor[0]]
        _draw_text(self.draw, (left, at[1]), text, size, colour, anchor[1], bold)

    def column(self, word: str, middle: int, bottom: int, colour: str, bold: bool) -> None:
        """Draw a word above a column: Chinese from top to bottom, other scripts rotated."""
        word = drawable_text(word)
        if is_chinese(word):
            for number, character in enumerate(reversed(word)):
                self.text(
                    (middle, bottom - number * (_SMALL_TYPE_SIZE + 2)), character, _SMALL_TYPE_SIZE, colour, "md", bold
                )
            return
        wide = _text_width(word, _SMALL_TYPE_SIZE, bold) + 2
        strip = Image.new("RGB", (wide, _SMALL_TYPE_SIZE + 6), style.PAPER)
        middle_left = (1, (_SMALL_TYPE_SIZE + 6) // 2)
        _draw_text(ImageDraw.Draw(strip), middle_left, word, _SMALL_TYPE_SIZE, colour, "m", bold)
        turned = strip.transpose(Image.Transpose.ROTATE_90)
        self.image.paste(turned, (middle - turned.width // 2, bottom - turned.height))

    def finished(self) -> PngImage:
        """Return the image as PNG."""
        buffer = io.BytesIO()
        self.image.save(buffer, format="PNG", compress_level=3)
        report_undrawn()
        return PngImage(*self.image.size, buffer.getvalue())


def _phrases(language: str) -> dict[str, str]:
    """Return the captions of an image, in the language of the sentence that the image shows."""
    with spoken_in(language):
        return {
            "rows": _("What the pronoun attends to, in every head"),
            "in percent": _("What the pronoun attends to, in every head (%)"),
            "maps": _("Every head’s map: a row attends, a column is attended to"),
            "head": pgettext("pictures of TensorBoard", "layer {layer} head {head}"),
            "short": pgettext("pictures of TensorBoard", "L{layer} H{head}"),
            "pronoun": _("pronoun"),
            "antecedent": _("antecedent"),
            "distractor": _("other candidate"),
            "step": _("step {step}"),
            "scale": _("weight in %; the colour follows its square root"),
            "blank": _("weight in %, blank below 0.5; the colour follows its square root"),
        }


def _roles_by_word(example: Example, row: WordRow) -> dict[int, str]:
    pronoun, antecedents, distractors = word_roles(example, row.spans)
    roles = dict.fromkeys(pronoun, "pronoun")
    for role, mentions in (("antecedent", antecedents), ("distractor", distractors)):
        for mention in mentions:
            for index in mention if isinstance(mention, Sequence) else (mention,):
                roles.setdefault(index, role)
    return roles


def _role_colour(role: str | None) -> str:
    return style.INK if role is None else _ROLE_COLOURS[role]


def _weight_colours(weights: NDArray[np.floating]) -> NDArray[np.uint8]:
    """Convert weights (...) to RGB colours (..., 3) on a square-root scale, on which small weights are visible."""
    ramp_indices = (np.sqrt(np.clip(weights, 0, 1)) * (len(_COLOUR_RAMP) - 1)).round().astype(np.int64)
    shades: NDArray[np.uint8] = _COLOUR_RAMP[ramp_indices]
    return shades


_COLOUR_RAMP = (np.asarray(style.WEIGHTS.colors) * 255).round().astype(np.uint8)


def _map_image(weights: NDArray[np.floating], cell: int) -> Image.Image:
    """Draw the attention map of one head, (W, W), with square cells of the given size in pixels."""
    size = (weights.shape[1] * cell, weights.shape[0] * cell)
    return Image.fromarray(_weight_colours(weights)).resize(size, Image.Resampling.NEAREST)


def _sentence_lines(example: Example, width: int) -> list[list[tuple[str, str | None]]]:
    """Break the sentence into lines of at most `width` pixels.

    A line is a list of (text, role or None) pairs from left to right.
    """
    owners: list[tuple[Span, str]] = [(example.pronoun, "pronoun")]
    for index, spans in enumerate(example.candidates):
        role = "antecedent" if index in example.antecedents else "distractor"
        owners += [(span, role) for span in spans]
    role_of = {index: role for (start, end), role in owners for index in range(start, end)}
    units: list[tuple[str, str | None]] = []
    for index, character in enumerate(example.text):
        own = role_of.get(index)
        joins = units and units[-1][1] == own and not (character.isspace() or is_chinese(character))
        if joins and not units[-1][0][-1:].isspace() and not is_chinese(units[-1][0]):
            units[-1] = (units[-1][0] + character, own)
        else:
            units.append((" " if character.isspace() else character, own))
    lines: list[list[tuple[str, str | None]]] = [[]]
    used = 0
    for text, own in units:
        long = _text_width(text, _TYPE_SIZE, own is not None)
        if used + long > width and lines[-1]:
            lines.append([])
            used = 0
        lines[-1].append((text, own))
        used += long
    return [line[::-1] for line in lines] if is_right_to_left(example.text.split()) else lines


def _draw_text(
    draw: ImageDraw.ImageDraw, at: tuple[int, int], text: str, size: int, colour: str, height: str, bold: bool
) -> None:
    """Draw text that starts at a point; `height` is the vertical (second) letter of a Pillow text anchor."""
    across, level = at
    for run, file in _font_runs(text, bold):
        font = _font(file, size)
        draw.text((across, level), run, fill=colour, font=font, anchor=f"l{height}")
        across += round(font.getlength(run))


@lru_cache(maxsize=4096)
def _text_width(text: str, size: int, bold: bool = False) -> int:
    return sum(round(_font(file, size).getlength(run)) for run, file in _font_runs(text, bold))


def _column_label_height(word: str) -> int:
    word = drawable_text(word)
    return (
        len(word) * (_SMALL_TYPE_SIZE + 2) if is_chinese(word) else _text_width(word, _SMALL_TYPE_SIZE, bold=True) + 2
    )


@lru_cache(maxsize=4096)
def _font_runs(text: str, bold: bool) -> tuple[tuple[str, Path], ...]:
    """Split a text into runs that a single font can draw."""
    runs = groupby(drawable_text(text), lambda character: font_file_of(character, bold))
    return tuple(("".join(characters), file) for file, characters in runs)


@lru_cache(maxsize=16)
def _font(file: Path, size: int) -> ImageFont.FreeTypeFont:
    return ImageFont.truetype(str(file), size, layout_engine=ImageFont.Layout.BASIC)

"""Small pictures of one sentence for TensorBoard: every head's pronoun row, and every head's map, in milliseconds.

They are drawn pixel by pixel with Pillow: a figure of matplotlib takes half a second, and these are drawn while a model
trains. The scale of colours is fixed, so that a slider shows change. Captions are in the sentence's language.

L layers, H heads, W words.
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

from anaphora.analysis.record import AttentionRecord
from anaphora.analysis.words import SPECIAL, WordRow, word_map, word_weights
from anaphora.data.example import Example, Span
from anaphora.report import style
from anaphora.report.fonts import drawable, face_of, is_chinese
from anaphora.report.pictures import roles

_SIZE = 15
_SMALL = 12
"""Type sizes in pixels."""
_MARGIN = 14
_LINE = 22
_LABELLED = 24
"""So many heads at most have their weights written into the pronoun rows."""
_WIDEST = 1280
"""Pixels over which a grid of maps takes smaller cells."""
_CELLS = (18, 15, 12, 9, 7, 5, 4, 3)
_LEGIBLE = 12
"""The smallest cell beside which its word is written."""
_SCALE = 240
"""Pixels of the scale of colours."""
_TICKS = (0.0, 0.01, 0.05, 0.2, 0.5, 1.0)
_PHRASES = {
    "en": {
        "rows": "What the pronoun attends to, in every head",
        "in percent": "What the pronoun attends to, in every head (%)",
        "maps": "Every head's map: a row attends, a column is attended to",
        "head": "layer {layer} head {head}",
        "short": "L{layer} H{head}",
        "pronoun": "pronoun",
        "antecedent": "antecedent",
        "distractor": "other candidate",
        "step": "step {step}",
        "special": "special",
        "scale": "weight; the colour follows its square root",
    },
    "zh": {
        "rows": "各注意力头中代词关注的位置",
        "in percent": "各注意力头中代词关注的位置（%）",
        "maps": "各注意力头的注意力图：行为关注者，列为被关注者",
        "head": "第 {layer} 层 第 {head} 头",
        "short": "{layer}层{head}头",
        "pronoun": "代词",
        "antecedent": "先行词",
        "distractor": "其他候选",
        "step": "第 {step} 步",
        "special": "特殊",
        "scale": "注意力权重，颜色按其平方根",
    },
}
_COLOURS = {"pronoun": style.PRONOUN, "antecedent": style.ANTECEDENT, "distractor": style.DISTRACTOR}


@dataclass(frozen=True)
class Picture:
    """A PNG with its size in pixels."""

    width: int
    height: int
    png: bytes


def rows_picture(record: AttentionRecord, step: int) -> Picture:
    """The pronoun's attention to every word: a line for each head, layers from above; step: of the training."""
    row = word_weights(record)
    layers, heads, count = row.weights.shape
    phrases = _PHRASES[record.example.language]
    who = _who(record.example, row)
    written = layers * heads <= _LABELLED
    high, wide = (20, 28) if written else (11, 24)
    labels = {
        (layer, head): phrases["head" if written else "short"].format(layer=layer, head=head)
        for layer in range(layers)
        for head in range(heads)
    }
    left = max(_length(label, _SMALL) for label in labels.values()) + 10
    words = [_shown(word, phrases) for word in row.words]
    head_room = max(_column_height(word) for word in words) + 6
    gap = 6
    sheet = _Sheet(record.example, phrases["in percent" if written else "rows"], step, left + count * wide, phrases)
    top = sheet.top + head_room
    sheet.grow(head_room + layers * heads * high + (layers - 1) * gap)
    left += _MARGIN
    for place, word in enumerate(words):
        sheet.column(word, left + place * wide + wide // 2, top - 4, _ink(who.get(place)), place in who)
    below = top
    for layer in range(layers):
        shades = _shades(row.weights[layer])
        begin = below
        for head in range(heads):
            if written or head % 4 == 0:
                sheet.text((_MARGIN, below + high // 2), labels[layer, head], _SMALL, style.INK, anchor="lm")
            for place in range(count):
                box = (left + place * wide, below, left + (place + 1) * wide - 2, below + high - 2)
                sheet.draw.rectangle(box, fill=tuple(shades[head, place]))
                percent = round(100 * float(row.weights[layer, head, place]))
                if written and percent:
                    ground = tuple(float(part) / 255 for part in shades[head, place])
                    middle = ((box[0] + box[2]) // 2, (box[1] + box[3]) // 2)
                    sheet.text(middle, str(percent), _SMALL, style.ink_on(ground), anchor="mm")
            below += high
        for place, role in who.items():
            box = (left + place * wide - 1, begin - 1, left + (place + 1) * wide - 1, below - 1)
            sheet.draw.rectangle(box, outline=_COLOURS[role], width=2)
        below += gap
    return sheet.finished()


def maps_picture(record: AttentionRecord, maps: NDArray[np.float32], step: int) -> Picture:
    """The maps of all heads side by side, a line for each layer.

    Args:
        record: the sentence.
        maps: (L, H, T, T) over its tokens, attending token first.
        step: of the training.
    """
    row = word_weights(record)
    merged = word_map(maps, record.words)
    layers, heads, count = merged.shape[:3]
    phrases = _PHRASES[record.example.language]
    who = _who(record.example, row)
    words = [_shown(word, phrases) for word in row.words]
    beside = max(_length(word, _SMALL) for word in words) + 8
    gap = 12
    cell = next((one for one in _CELLS if beside + heads * (count * one + gap) <= _WIDEST), _CELLS[-1])
    legible = cell >= _LEGIBLE
    left = beside if legible else _length("0", _SMALL) + 10
    over = max(_column_height(word) for word in words) + 6 if legible else 0
    side = count * cell
    title = _LINE - 4
    sheet = _Sheet(record.example, phrases["maps"], step, left + heads * (side + gap) - gap, phrases)
    first = sheet.top
    sheet.grow(over + layers * (title + side + gap) - gap)
    left += _MARGIN
    for head in range(heads):
        for place, word in enumerate(words if legible else ()):
            middle = left + head * (side + gap) + place * cell + cell // 2
            sheet.column(word, middle, first + over - 4, _ink(who.get(place)), place in who)
    longest = phrases["head"].format(layer=layers - 1, head=heads - 1)
    label = phrases["head" if _length(longest, _SMALL) <= side else "short"]
    for layer in range(layers):
        top = first + over + layer * (title + side + gap) + title
        for place, word in enumerate(words if legible else ()):
            at = (left - 6, top + place * cell + cell // 2)
            sheet.text(at, word, _SMALL, _ink(who.get(place)), anchor="rm", bold=place in who)
        for head in range(heads):
            begin = left + head * (side + gap)
            named = label.format(layer=layer, head=head)
            sheet.text((begin, top - title // 2), named, _SMALL, style.MUTED, anchor="lm")
            sheet.image.paste(_enlarged(merged[layer, head], cell), (begin, top))
            sheet.draw.rectangle((begin - 1, top - 1, begin + side, top + side), outline=style.HAIRLINE)
            pronoun = next(place for place, role in who.items() if role == "pronoun")
            across = (begin - 1, top + pronoun * cell - 1, begin + side, top + (pronoun + 1) * cell)
            sheet.draw.rectangle(across, outline=style.PRONOUN, width=2)
            for place, role in who.items():
                if role != "pronoun":
                    box = (begin + place * cell - 1, across[1], begin + (place + 1) * cell, across[3])
                    sheet.draw.rectangle(box, outline=_COLOURS[role], width=2)
    return sheet.finished()


class _Sheet:
    """A white page with a heading, the sentence with its roles in colour, and at its foot the scale of colours."""

    def __init__(self, example: Example, title: str, step: int, width: int, phrases: Mapping[str, str]) -> None:
        self._example, self._title, self._phrases = example, title, phrases
        self._step = phrases["step"].format(step=f"{step:,}")
        heading = _length(title, _SIZE, bold=True) + 24 + _length(self._step, _SIZE)
        self._width = max(width, heading, _SCALE + 18 + _length(phrases["scale"], _SMALL))
        self._lines = _lines(example, self._width)
        self.top = _MARGIN + _LINE + len(self._lines) * _LINE + _LINE + 6
        self.image = Image.new("RGB", (1, 1))
        self.draw = ImageDraw.Draw(self.image)

    def grow(self, height: int) -> None:
        """Make room for so many pixels between heading and foot, and write both."""
        size = (self._width + 2 * _MARGIN, self.top + height + 2 * _LINE + 8)
        self.image = Image.new("RGB", size, style.PAPER)
        self.draw = ImageDraw.Draw(self.image)
        self.text((_MARGIN, _MARGIN), self._title, _SIZE, style.INK, bold=True)
        self.text((size[0] - _MARGIN, _MARGIN), self._step, _SIZE, style.MUTED, anchor="ra")
        below = _MARGIN + _LINE
        for line in self._lines:
            across = _MARGIN
            for text, role in line:
                self.text((across, below), text, _SIZE, _ink(role), bold=role is not None)
                across += _length(text, _SIZE, role is not None)
            below += _LINE
        across = _MARGIN
        for role, colour in _COLOURS.items():
            self.draw.rectangle((across, below + 5, across + 9, below + 14), fill=colour)
            self.text((across + 14, below + 2), self._phrases[role], _SMALL, style.MUTED)
            across += 14 + _length(self._phrases[role], _SMALL) + 16
        self._scale(self.top + height + 14)

    def _scale(self, top: int) -> None:
        """Colours from 0 to 1 by the square root, with a few weights under them."""
        bar = Image.fromarray(_shades(np.linspace(0, 1, _SCALE)[None] ** 2))
        self.image.paste(bar.resize((_SCALE, 10), Image.Resampling.NEAREST), (_MARGIN, top))
        for tick in _TICKS:
            at = _MARGIN + round(tick**0.5 * (_SCALE - 1))
            self.draw.line((at, top + 10, at, top + 13), fill=style.MUTED)
            self.text((at, top + 15), f"{tick:g}", _SMALL - 1, style.MUTED, anchor="ma")
        self.text((_MARGIN + _SCALE + 18, top + 5), self._phrases["scale"], _SMALL, style.MUTED, anchor="lm")

    def text(
        self, at: tuple[int, int], text: str, size: int, colour: str, anchor: str = "la", bold: bool = False
    ) -> None:
        """Write a text; anchors as Pillow's, of which the first letter is l, m or r."""
        across = at[0] - {"l": 0, "m": _length(text, size, bold) // 2, "r": _length(text, size, bold)}[anchor[0]]
        for piece, file in _pieces(text, bold):
            font = _font(file, size)
            self.draw.text((across, at[1]), piece, fill=colour, font=font, anchor=f"l{anchor[1]}")
            across += round(font.getlength(piece))

    def column(self, word: str, middle: int, bottom: int, colour: str, bold: bool) -> None:
        """A word over a column: Chinese from above downwards, other writing turned to be read from below."""
        word = drawable(word)
        if is_chinese(word):
            for number, character in enumerate(reversed(word)):
                self.text((middle, bottom - number * (_SMALL + 2)), character, _SMALL, colour, "md", bold)
            return
        wide = _length(word, _SMALL, bold) + 2
        strip = Image.new("RGB", (wide, _SMALL + 6), style.PAPER)
        across = 1
        for piece, file in _pieces(word, bold):
            font = _font(file, _SMALL)
            ImageDraw.Draw(strip).text((across, (_SMALL + 6) // 2), piece, fill=colour, font=font, anchor="lm")
            across += round(font.getlength(piece))
        turned = strip.transpose(Image.Transpose.ROTATE_90)
        self.image.paste(turned, (middle - turned.width // 2, bottom - turned.height))

    def finished(self) -> Picture:
        """The page as PNG."""
        buffer = io.BytesIO()
        self.image.save(buffer, format="PNG", compress_level=3)
        return Picture(*self.image.size, buffer.getvalue())


def _who(example: Example, row: WordRow) -> dict[int, str]:
    """The role of every word that has one."""
    pronoun, antecedents, distractors = roles(example, row)
    found = {pronoun: "pronoun"}
    for role, named in (("antecedent", antecedents), ("distractor", distractors)):
        for each in named:
            for place in each if isinstance(each, Sequence) else (each,):
                found.setdefault(place, role)
    return found


def _ink(role: str | None) -> str:
    return style.INK if role is None else _COLOURS[role]


def _shown(word: str, phrases: Mapping[str, str]) -> str:
    return phrases["special"] if word == SPECIAL else word


def _shades(weights: NDArray[np.floating]) -> NDArray[np.uint8]:
    """The colour of every weight, (..., 3); the square root lets small weights be seen."""
    places = (np.sqrt(np.clip(weights, 0, 1)) * (len(_RAMP) - 1)).round().astype(np.int64)
    shades: NDArray[np.uint8] = _RAMP[places]
    return shades


_RAMP = (np.asarray(style.WEIGHTS.colors) * 255).round().astype(np.uint8)


def _enlarged(weights: NDArray[np.floating], cell: int) -> Image.Image:
    """A map (W, W) with squares of so many pixels for its weights."""
    size = (weights.shape[1] * cell, weights.shape[0] * cell)
    return Image.fromarray(_shades(weights)).resize(size, Image.Resampling.NEAREST)


def _lines(example: Example, width: int) -> list[list[tuple[str, str | None]]]:
    """The sentence in lines of so many pixels, cut into pieces that have a role or none."""
    owners: list[tuple[Span, str]] = [(example.pronoun, "pronoun")]
    for index, spans in enumerate(example.candidates):
        role = "antecedent" if index in example.antecedents else "distractor"
        owners += [(span, role) for span in spans]
    role_of = {place: role for (start, end), role in owners for place in range(start, end)}
    units: list[tuple[str, str | None]] = []
    for place, character in enumerate(example.text):
        own = role_of.get(place)
        joins = units and units[-1][1] == own and not (character.isspace() or is_chinese(character))
        if joins and not units[-1][0][-1:].isspace() and not is_chinese(units[-1][0]):
            units[-1] = (units[-1][0] + character, own)
        else:
            units.append((" " if character.isspace() else character, own))
    lines: list[list[tuple[str, str | None]]] = [[]]
    used = 0
    for text, own in units:
        long = _length(text, _SIZE, own is not None)
        if used + long > width and lines[-1]:
            lines.append([])
            used = 0
        lines[-1].append((text, own))
        used += long
    return lines


@lru_cache(maxsize=4096)
def _length(text: str, size: int, bold: bool = False) -> int:
    """How many pixels a text takes."""
    return sum(round(_font(file, size).getlength(piece)) for piece, file in _pieces(text, bold))


def _column_height(word: str) -> int:
    word = drawable(word)
    return len(word) * (_SMALL + 2) if is_chinese(word) else _length(word, _SMALL, bold=True) + 2


@lru_cache(maxsize=4096)
def _pieces(text: str, bold: bool) -> tuple[tuple[str, Path], ...]:
    """A text as it can be drawn, in pieces of one face each."""
    cut = groupby(drawable(text), lambda character: face_of(character, bold))
    return tuple(("".join(characters), file) for file, characters in cut)


@lru_cache(maxsize=16)
def _font(file: Path, size: int) -> ImageFont.FreeTypeFont:
    return ImageFont.truetype(str(file), size, layout_engine=ImageFont.Layout.BASIC)

"""Pictures of the four sentences of a quad (two cues in two orders of the names): four_sentences_*.png.

Each line has a sentence with the pronoun's attention in the run's chosen head, and whether three heuristics and the
head choose the antecedent. The picture with English sentences and Chinese labels is four_sentences_en_zh.png.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from matplotlib.patches import Rectangle

import anaphora
from anaphora.analysis.results.scores import Head
from anaphora.api import OpenRun
from anaphora.base.errors import UserError
from anaphora.report.figures import style
from anaphora.report.figures.files import save_figure
from anaphora.report.figures.sheet import Heading, Sheet, role_frame, scale_width, text_width
from anaphora.report.figures.style import figure_style
from experiments.four_sentences.settings import FourSentences

_GAP, _BOX, _LINE, _HEADS = 0.035, 0.19, 0.4, 0.32
"""Gap between boxes, height of a box, distance between sentences, and height of the column headings, in inches."""


@dataclass(frozen=True, kw_only=True)
class Quad:
    """Sentences with two names in both orders and two cues.

    Attributes:
        names: the two candidates.
        patterns: for each cue, the sentence with {first} and {second}, and the antecedent among these two.
        pronoun_in: the pronoun as written in the title, by language.
    """

    names: tuple[str, str]
    pronoun: str
    patterns: tuple[tuple[str, int], tuple[str, int]]
    pronoun_in: dict[str, str]


@dataclass(frozen=True, kw_only=True)
class Words:
    """Labels of a picture in one language; {pronoun} and {name} are those of the quad, and {chosen} is the head.

    Attributes:
        heuristics: headings for "the first name", "the nearest name" and "always the first of the quad's names".
        head: heading of the head's column.
        score: number of correct choices out of four, with {right}.
        chosen: name of the head, with {layer} and {head}.
    """

    title: str
    heuristics: tuple[str, str, str]
    head: str
    score: str
    scale: str
    chosen: str


QUADS = {
    "en": Quad(
        names=("Anna", "Emma"),
        pronoun="she",
        patterns=(
            ("{first} was rescued by {second} because she was weak.", 0),
            ("{first} rescued {second} because she was weak.", 1),
        ),
        pronoun_in={"en": "“she”", "zh": "“she”"},
    ),
    "zh": Quad(
        names=("小红", "美玲"),
        pronoun="她",
        patterns=(("{first}被{second}救了，因为她很虚弱。", 0), ("{first}救了{second}，因为她很虚弱。", 1)),
        pronoun_in={"en": "“她” (she)", "zh": "“她”"},
    ),
}
WORDS = {
    "en": Words(
        title="What {pronoun} attends to: three heuristics are right in half of the sentences, the head in all",
        heuristics=("first\nname", "nearest\nname", "always\n{name}"),
        head="the\nhead",
        score="{right} of 4",
        scale="weight from {pronoun} (framed) in {chosen}; below a name, its number; underlined: the antecedent",
        chosen="layer {layer}, head {head}",
    ),
    "zh": Words(
        title="{pronoun}关注哪些词：三种捷径四句各对两句，这个头四句全对",
        heuristics=("第一个\n名字", "最近的\n名字", "总选\n{name}"),
        head="这个\n头",
        score="{right}/4",
        scale="{chosen}里{pronoun}（加框）的注意力权重，名字下面是数值；画线的是先行词",
        chosen="第 {layer} 层第 {head} 头",
    ),
}


@dataclass(frozen=True)
class Sentence:
    """Line of the picture: the words with the pronoun's weights, and the positions of the two names."""

    words: list[str]
    weights: list[float]
    first: int
    second: int
    antecedent: int
    pronoun: int

    def parts(self) -> list[range]:
        """Return the word indices of each column: first name, words between the names, second name, rest."""
        ends = (0, self.first + 1, self.second, self.second + 1, len(self.words))
        return [range(start, end) for start, end in pairwise(ends)]

    def picks(self, name: str) -> list[bool]:
        """Return whether the first name, the nearest name, `name`, and the head's strongest name are the antecedent."""
        fixed = self.first if self.words[self.first] == name else self.second
        strongest = max((self.first, self.second), key=self.weights.__getitem__)
        nearest = min((self.first, self.second), key=lambda word: abs(self.pronoun - word))
        return [word == self.antecedent for word in (self.first, nearest, fixed, strongest)]


def sentences(run: OpenRun, quad: Quad) -> list[Sentence]:
    """Return the quad's sentences, each cue in both orders, with the attention of the run's chosen head."""
    read = []
    for pattern, antecedent in quad.patterns:
        for names in (quad.names, quad.names[::-1]):
            row = run.attention(pattern.format(first=names[0], second=names[1])).row(quad.pronoun)
            words = list(row.words[row.words.index(names[0]) :])  # without the token before the sentence
            weights = [float(weight) for weight in row.weights[-len(words) :]]
            first, second, pronoun = (words.index(word) for word in (*names, quad.pronoun))
            read.append(Sentence(words, weights, first, second, (first, second)[antecedent], pronoun))
    return read


@figure_style()
def draw(quad: Quad, lines: list[Sentence], chosen: Head, language: str, stem: Path) -> list[Path]:
    """Draw the picture with labels in a language, and write it as PNG."""
    words = WORDS[language]
    right = [sum(picked) for picked in zip(*(line.picks(quad.names[0]) for line in lines), strict=True)]
    if right != [2, 2, 2, 4]:
        raise SystemExit(f"the title says half for the heuristics and all for the head, but of 4 they pick {right}")
    pronoun = quad.pronoun_in[language]
    head = words.chosen.format(layer=chosen.layer, head=chosen.head)
    title, scale = words.title.format(pronoun=pronoun), words.scale.format(pronoun=pronoun, chosen=head)
    headings = [heading.format(name=quad.names[0]) for heading in (*words.heuristics, words.head)]

    def box_width(line: Sentence, word: int) -> float:
        return text_width(line.words[word], style.TEXT, bold=word in (line.first, line.second, line.pronoun)) + 0.09

    def part_width(line: Sentence, part: range) -> float:
        return sum(box_width(line, word) + _GAP for word in part)

    columns = [max(part_width(line, line.parts()[part]) for line in lines) for part in range(4)]
    margin, verdicts, heading = 0.15, 0.52, Heading(title, None)
    left_of_verdicts = margin + sum(columns) + 0.25
    width = max(left_of_verdicts + 4 * verdicts, heading.width, scale_width(scale)) + margin
    sheet = Sheet(width, heading.height + _HEADS + _LINE * len(lines) + 0.62, heading)

    middles = [left_of_verdicts + verdicts * (number + 0.5) for number in range(4)]
    top = sheet.height - heading.height
    for middle, name in zip(middles, headings, strict=True):
        sheet.canvas.text(
            middle, top - 0.24, name, ha="center", fontsize=style.SMALL, linespacing=1.15,
            fontweight="bold" if name == words.head else "normal",
        )  # fmt: skip
    for number, line in enumerate(lines):
        base = top - _HEADS - _LINE * (number + 0.65)
        left = margin
        for part, column in zip(line.parts(), columns, strict=True):
            at = left + (column - part_width(line, part)) / 2 if part.stop <= line.second + 1 else left
            for word in part:
                box = box_width(line, word)
                _draw_word(sheet, line, word, at, base, box)
                at += box + _GAP
            left += column
        for middle, picked in zip(middles, line.picks(quad.names[0]), strict=True):
            _draw_mark(sheet, middle, base + _BOX / 2, picked)
    foot = top - _HEADS - _LINE * len(lines) - 0.13
    for column, middle in enumerate(middles):
        sheet.canvas.text(
            middle, foot, words.score.format(right=right[column]), ha="center", fontsize=style.TEXT, fontweight="bold",
            color=style.ANTECEDENT if right[column] == len(lines) else style.DISTRACTOR,
        )  # fmt: skip
    sheet.draw_scale(margin, 0.18, 1, scale)
    return save_figure(sheet.figure, stem, ["png"])


def _draw_word(sheet: Sheet, line: Sentence, word: int, left: float, base: float, width: float) -> None:
    named = word in (line.first, line.second)
    paint = style.WEIGHTS(min(line.weights[word], 1.0))
    sheet.canvas.add_patch(Rectangle((left, base), width, _BOX, facecolor=paint, linewidth=0))
    sheet.canvas.text(
        left + width / 2, base + _BOX * 0.3, line.words[word], ha="center", fontsize=style.TEXT,
        color=style.text_colour_on(paint), fontweight="bold" if named or word == line.pronoun else "normal",
    )  # fmt: skip
    if word == line.pronoun:
        sheet.canvas.add_patch(role_frame(left, base, width, _BOX, "pronoun", 1.4))
    if named:
        colour = style.ANTECEDENT if word == line.antecedent else style.MUTED
        if word == line.antecedent:
            sheet.canvas.plot([left, left + width], [base - 0.03] * 2, color=colour, linewidth=2.0)
        sheet.canvas.text(
            left + width / 2, base - 0.055, f"{line.weights[word]:.2f}", ha="center", va="top",
            fontsize=style.SMALL, color=colour, fontweight="bold",
        )  # fmt: skip


def _draw_mark(sheet: Sheet, x: float, y: float, right: bool) -> None:
    check = [([-0.06, -0.02, 0.065], [0.0, -0.05, 0.06])]
    cross = [([-0.05, 0.05], [-0.05, 0.05]), ([-0.05, 0.05], [0.05, -0.05])]
    for xs, ys in check if right else cross:
        sheet.canvas.plot(
            [x + dx for dx in xs], [y + dy for dy in ys], linewidth=1.8, solid_capstyle="round",
            color=style.ANTECEDENT if right else style.DISTRACTOR,
        )  # fmt: skip


def draw_all(settings: FourSentences) -> None:
    """Draw the quads of both languages.

    Raises:
        UserError: the run has no chosen head.
    """
    opened = anaphora.load(settings.run)
    if opened.chosen_head is None:
        raise UserError(f"{settings.run}: no head has been chosen yet; anaphora score chooses one")
    folder = Path(settings.output or f"{settings.run}/figures")
    for own, of_quad in QUADS.items():
        read_sentences = sentences(opened, of_quad)
        for spoken in WORDS:
            ending = "" if spoken == "en" else f"_{spoken}"
            draw(of_quad, read_sentences, opened.chosen_head, spoken, folder / f"four_sentences_{own}{ending}")

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Annotation, Text
from numpy.typing import NDArray

from anaphora.base.errors import UserError
from anaphora.base.language import is_right_to_left
from anaphora.report.figures import bars, heads, maps, sheet, style
from anaphora.report.figures.bars import SharePoint
from anaphora.report.figures.maps import QuadCell

PRICED = "last week , the album showed the lamp and the king . someone said that he was $5 hungry and cost $9 ."
ENGLISH = PRICED.split()
MEETING = "那天 下午 ， 小红 在 博物馆 里 遇见 了 美玲 ， 因为 她 很 高兴 。"
CHINESE = MEETING.split()
LONG = f"{MEETING} 所以 大家 都 说 这 是 一个 非常 难忘 的 展览 ， 图书馆管理员 也 同意 了 这个 看法 。".split()
ODD = ["don’t", "\U00013000", "x_1^2", "$^$", "internationalisation", "她"]


def even(count: int) -> NDArray[np.float64]:
    return np.full(count, 1 / count)


def favouring(count: int, places: Sequence[int]) -> NDArray[np.float64]:
    weights = np.full(count, 0.01)
    weights[list(places)] = 0.4
    weights /= weights.sum()
    return weights


def cell(words: Sequence[str], antecedent: int, distractor: int, attended: int) -> QuadCell:
    return QuadCell(
        words=words,
        weights=favouring(len(words), [attended]),
        pronoun=len(words) - 2,
        antecedents=[antecedent],
        distractors=[distractor],
        label="因为, order 0",
    )


def grid(layers: int, heads: int) -> NDArray[np.float64]:
    return np.linspace(0, 1, layers * heads).reshape(layers, heads)


GALLERY: dict[str, Callable[[], Figure]] = {
    "heat map, English": lambda: maps.heat_map_figure(
        ENGLISH, np.eye(len(ENGLISH)), "layer 2 head 0", 14, [[9, 10]], [[6, 7]]
    ),
    "heat map, long Chinese": lambda: maps.heat_map_figure(LONG, np.eye(len(LONG)), "第 2 层", 12, [3], [9]),
    "heat map, odd words": lambda: maps.heat_map_figure(
        ODD, np.eye(6), "A title that is a good deal wider than the map"
    ),
    "heat map, one word": lambda: maps.heat_map_figure(["她"], [[1.0]], ""),
    "row, English": lambda: maps.pronoun_row_figure(
        ENGLISH, favouring(len(ENGLISH), [10]), 14, [[9, 10]], [[6, 7]], "he, layer 2 head 0"
    ),
    "row, Chinese": lambda: maps.pronoun_row_figure(CHINESE, favouring(len(CHINESE), [3]), 12, [3], [9], "代词“她”"),
    "row, three lines": lambda: maps.pronoun_row_figure(
        LONG * 2, favouring(len(LONG) * 2, [0]), 12, [[3, 41]], [9], "长句"
    ),
    "row, nothing attended": lambda: maps.pronoun_row_figure(ODD, np.zeros(6), 5, [0], [1], ""),
    "grid, 3 x 2": lambda: heads.head_grid_figure(
        grid(3, 2), 0.45, (2, 0), "Candidate accuracy of every head, development"
    ),
    "grid, 6 x 12": lambda: heads.head_grid_figure(grid(6, 12), 0.02, (4, 7), ""),
    "grid, 12 x 12": lambda: heads.head_grid_figure(grid(12, 12), 0.5, (11, 11), ""),
    "grid, 1 x 1": lambda: heads.head_grid_figure([[0.97]], 0.5, (0, 0), "One"),
    "quad": lambda: maps.quad_figure([cell(CHINESE, 3, 9, 3), cell(CHINESE, 9, 3, 9)] * 2, "因果"),
    "quad, 3 x 3": lambda: maps.quad_figure([cell(ENGLISH, 7, 10, 10)] * 9),
    "quad, one cell": lambda: maps.quad_figure([cell(ENGLISH, 7, 10, 10)]),
    "training": lambda: heads.alignment_figure(
        range(0, 5000, 1000), np.stack([grid(3, 2)] * 5), 0.45, (2, 0), np.linspace(0.4, 1, 5), "Development split"
    ),
    "training, one step": lambda: heads.alignment_figure([100], grid(1, 1)[None], 0.5, (0, 0)),
    "strata": lambda: bars.share_points_figure(
        [
            SharePoint(
                label=label, value=0.9, low=0.8, high=1.0, baselines={"chance": 0.5, "未训练": 0.6}, measure=measure
            )
            for label in ("English, set cues", "中文，角色线索")
            for measure in ("task accuracy", "candidate accuracy")
        ],
        "Scoreboard",
    ),
    "strata, bare": lambda: bars.share_points_figure([SharePoint(label="all", value=1.0)]),
}


def texts(figure: Figure) -> list[Text]:
    return [text for text in figure.findobj(Text) if isinstance(text, Text) and text.get_visible() and text.get_text()]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("draw", GALLERY.values(), ids=GALLERY)
def test_every_figure_draws_every_character_and_cuts_none_off(draw: Callable[[], Figure]) -> None:
    figure = draw()
    figure.draw_without_rendering()
    inked = figure.get_tightbbox()
    assert inked is not None
    assert inked.xmin >= -0.01
    assert inked.ymin >= -0.01
    assert inked.xmax <= figure.get_figwidth() + 0.01
    assert inked.ymax <= figure.get_figheight() + 0.01


@pytest.mark.parametrize("draw", GALLERY.values(), ids=GALLERY)
def test_no_type_is_smaller_than_six_points(draw: Callable[[], Figure]) -> None:
    figure = draw()
    figure.draw_without_rendering()
    assert min(float(text.get_fontsize()) for text in texts(figure)) >= 6


def words_of(figure: Figure) -> list[str]:
    return [text.get_text() for text in texts(figure)]


def test_a_heat_map_names_rows_columns_and_unit() -> None:
    drawn = words_of(GALLERY["heat map, long Chinese"]())
    assert {"attended word", "attending word", "attention weight", "图书馆管理员", "图\n书\n馆\n管\n理\n员"} <= set(
        drawn
    )


def test_a_rows_shading_is_the_attending_words() -> None:
    weights = np.zeros((3, 3))
    weights[2, 0] = 1.0
    figure = maps.heat_map_figure(["she", "saw", "him"], weights, "")
    canvas = FigureCanvasAgg(figure)
    canvas.draw()  # type: ignore[no-untyped-call]
    picture = np.asarray(canvas.buffer_rgba())  # type: ignore[no-untyped-call]
    axes = figure.axes[1]

    def darkness(column: int, row: int) -> float:
        x, y = axes.transData.transform((column + 0.5, row + 0.5))
        return 255.0 - float(picture[picture.shape[0] - int(y), int(x), :3].mean())

    assert darkness(0, 2) > 100
    assert darkness(2, 0) < 15
    top, bottom = (axes.transData.transform((0, row))[1] for row in (0.5, 2.5))
    assert top > bottom  # the first word's row is the uppermost


@pytest.mark.parametrize(("candidates", "is_explained"), [(([0], [3]), True), (([], [3]), True), (([], []), False)])
def test_the_caption_explains_the_numbers_of_candidates_where_there_are_some(
    candidates: tuple[list[int], list[int]], is_explained: bool
) -> None:
    figure = maps.pronoun_row_figure(["Tom", "met", "the", "king", "he"], np.full(5, 0.2), 4, *candidates, "")
    assert any("below each candidate" in text.get_text() for text in texts(figure)) == is_explained


def test_words_of_a_script_from_right_to_left_stand_from_right_to_left() -> None:
    words = ["[CLS]", "قال", "محمد", "الكبير", "«", "هو", "»", *["كلمة"] * 20, "[SEP]"]
    weights = np.full(len(words), 1 / len(words))
    figure = maps.pronoun_row_figure(words, weights, 5, [[2, 3]], [], "")
    figure.draw_without_rendering()
    place = {text.get_text(): text.get_position() for text in texts(figure)}
    (first, line), (name, _), (rest, _), (pronoun, _), (last, end) = (
        place[word] for word in ("[CLS]", "محمد", "الكبير", "هو", "[SEP]")
    )
    assert first > name > rest > pronoun
    assert end < line and last < first
    assert rest < place[f"{2 / len(words):.2f}"][0] < name  # the candidate's sum is below its words
    assert place["»"] > place["هو"] > place["«"]  # quotation marks open towards the words between them
    assert is_right_to_left(words) and not is_right_to_left(["<s>", "3", "word", "محمد"])


def test_the_sum_over_a_candidates_words_stands_under_it() -> None:
    weights = [0.3, 0.3, 0.0, 0.15, 0.25]
    drawn = words_of(maps.pronoun_row_figure(["the", "king", "saw", "Ann", "he"], weights, 4, [[0, 1]], [3], ""))
    assert drawn.count("0.60") == 1
    assert drawn.count("0.15") == 1
    assert "0.00" not in drawn


def test_every_picture_of_weights_has_one_scale_from_0_to_1() -> None:
    heat_map = maps.heat_map_figure(["she", "saw", "him"], np.full((3, 3), 0.1), "")
    pale, dark = (
        maps.pronoun_row_figure(["Ann", "saw", "her"], [weight, 0.0, 0.0], 2, [0], [], "") for weight in (0.2, 0.8)
    )
    quad = maps.quad_figure([cell(ENGLISH, 7, 10, 10)])
    assert "1" in words_of(pale)
    assert "1" in words_of(quad)
    assert heat_map.axes[1].collections[0].get_clim() == (0.0, 1.0)
    heights = [max(patch.get_window_extent().height for patch in figure.axes[0].patches) for figure in (pale, dark)]
    assert heights[0] < heights[1]


def test_a_long_sentence_goes_on_in_the_next_line_within_the_page() -> None:
    short, long = GALLERY["row, Chinese"](), GALLERY["row, three lines"]()
    assert long.get_figwidth() <= 7.0
    assert long.get_figheight() > 1.5 * short.get_figheight()


def test_a_candidates_words_stay_in_one_line() -> None:
    words = ["word"] * 30
    figure = maps.pronoun_row_figure(words, even(30), 0, [list(range(10, 18))], [], "")
    figure.draw_without_rendering()
    heights = [round(text.get_position()[1], 3) for text in texts(figure) if text.get_text() == "word"]
    assert len(set(heights)) > 1
    assert len(set(heights[10:18])) == 1


@pytest.mark.parametrize(
    ("word", "marks", "opening", "closing"),
    [
        ("word", "“ 《", ['"', "《"], []),
        ("word", "“", ['"'], []),
        ("word", "」 ，", [], ["」", "，"]),
        ("word", "…", [], ["..."]),
        ("كلمة", "(", [")"], []),  # turned for words from right to left
        ("كلمة", ")", [], ["("]),
    ],
)
def test_no_line_ends_with_an_opening_mark_or_begins_with_a_closing_one(
    word: str, marks: str, opening: list[str], closing: list[str]
) -> None:
    for count in range(6, 24):  # the marks come to the end of a line for some of them
        words = [*[word] * count, *marks.split(), *[word] * 7]
        figure = maps.pronoun_row_figure(words, even(len(words)), 0, [], [], "")
        figure.draw_without_rendering()
        drawn = [text for text in texts(figure) if text.get_text() in {word, *opening, *closing}]
        assert len(drawn) == len(words)
        first = {text.get_position()[1]: text.get_text() for text in reversed(drawn)}
        last = {text.get_position()[1]: text.get_text() for text in drawn}
        assert not set(first.values()) & set(closing), "a line begins with the mark"
        assert not set(last.values()) & set(opening), "a line ends with the mark"


def marks(figure: Figure) -> list[str]:
    """Return the marks of the cells: a check is one stroke with three points, a cross two strokes with two."""
    strokes = [len(line.get_xdata()) for line in figure.axes[0].lines if line.get_linewidth() == 1.6]  # type: ignore[arg-type]
    return ["right" for points in strokes if points == 3] + ["wrong"] * (strokes.count(2) // 2)


def test_a_cell_is_right_where_an_antecedent_beats_every_distractor() -> None:
    right, wrong = cell(CHINESE, 3, 9, 3), cell(CHINESE, 3, 9, 9)
    tie = QuadCell(words=["a", "b", "she"], weights=[0.4, 0.4, 0.2], pronoun=2, antecedents=[0], distractors=[1])
    assert marks(maps.quad_figure([right, wrong, tie, right])) == ["right", "right", "wrong", "wrong"]


def test_a_cell_compares_sums_over_candidates_not_single_words() -> None:
    split = QuadCell(
        words=["the", "king", "Ann", "he"], weights=[0.3, 0.3, 0.4, 0], pronoun=3, antecedents=[[0, 1]], distractors=[2]
    )
    assert marks(maps.quad_figure([split])) == ["right"]


def test_the_grid_prints_each_score_and_names_the_chosen_head() -> None:
    drawn = words_of(GALLERY["grid, 3 x 2"]())
    assert {
        "0",
        "20",
        "40",
        "60",
        "80",
        "100",
        "chance 45",
        "framed: layer 2 head 0, chosen on the development split",
    } <= set(drawn)
    assert "candidate accuracy (%)" in drawn


@pytest.mark.parametrize("name", ["strata", "training"])
def test_accuracies_run_to_a_hundred_per_cent(name: str) -> None:
    figure = GALLERY[name]()
    figure.draw_without_rendering()
    drawn = words_of(figure)
    assert {"0", "20", "40", "60", "80", "100", "accuracy (%)"} <= set(drawn)


def test_the_best_other_head_is_named_where_its_line_ends_and_the_first_step_is_marked() -> None:
    scores = np.full((3, 3, 1), 0.3)
    scores[-1, :, 0] = 0.45, 0.9, 0.35
    figure = heads.alignment_figure([500, 1000, 20000], scores, 0.5, (0, 0))
    figure.draw_without_rendering()
    axes = figure.axes[1]
    heights = {text.get_text(): text.xy[1] for text in axes.texts if isinstance(text, Annotation)}
    assert heights["layer 1 head 0"] == pytest.approx(0.9)
    assert heights["other heads"] < 0.45
    assert axes.get_xticks()[0] == 500


def test_a_long_legend_goes_on_in_the_next_line() -> None:
    baselines = {f"a rule with a name of its own, {number}": 0.5 for number in range(6)}
    figure = bars.share_points_figure([SharePoint(label="all", value=0.9, baselines=baselines)])
    assert figure.get_figwidth() <= style.DOUBLE_COLUMN
    styles = [sheet.tick_style(rank)["linestyle"] for rank in range(4)]
    assert len({str(one) for one in styles}) == 4


def test_labels_of_equal_heights_are_moved_apart() -> None:
    moved = sheet.spread_labels([1.0, 1.0, 0.98, 0.0], gap=0.1, low=0.0, high=1.0)
    ordered = sorted(moved)
    assert min(above - below for below, above in pairwise(ordered)) >= 0.1 - 1e-9
    assert ordered[0] >= 0
    assert ordered[-1] <= 1


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda: maps.heat_map_figure(["a", "b"], np.zeros((3, 3)), ""), "weights must have shape 2 x 2, got 3 x 3"),
        (lambda: maps.heat_map_figure(["a"], [[np.nan]], ""), "must be finite; 1 of 1"),
        (lambda: maps.heat_map_figure([], [], ""), "at least one word"),
        (lambda: maps.pronoun_row_figure(["a"], [-0.5], 0, [], [], ""), "at least 0, got -0.5"),
        (lambda: maps.pronoun_row_figure(["a"], [1], 1, [], [], ""), "pronoun 1 is outside the sentence"),
        (lambda: maps.pronoun_row_figure(["a"], [1], 0, [[0, 3]], [], ""), r"antecedent \[0, 3\] is outside"),
        (lambda: heads.head_grid_figure(grid(2, 2), 0.5, (2, 0), ""), r"chosen head \(2, 0\) is outside the grid of 2"),
        (lambda: heads.head_grid_figure(0.5, 0.5, (0, 0), ""), "any x any, got a single number"),
        (lambda: maps.quad_figure([cell(CHINESE, 3, 9, 3)] * 3), "m x m sentences"),
        (lambda: heads.alignment_figure([2, 1], np.zeros((2, 1, 1)), 0.5, (0, 0)), "steps must rise"),
        (lambda: bars.share_points_figure([SharePoint(label="x", value=97.0)]), "'x': 97.0 is outside"),
        (lambda: bars.share_points_figure([]), "at least one row"),
    ],
)
def test_a_wrong_argument_is_reported_in_one_line(draw: Callable[[], Figure], message: str) -> None:
    with pytest.raises(UserError, match=message):
        draw()

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from invented import cells, plan, record, records, rule, study
from matplotlib.figure import Figure
from matplotlib.text import Text

from anaphora.base.errors import UserError
from anaphora.base.files import write_json
from anaphora.base.translation import _, spoken_in
from anaphora.report.figures import style
from anaphora.report.page.elements import VerdictElement
from anaphora.report.wording import language_name
from anaphora.studies.page.conclusions import answer_sentence, conclusions
from anaphora.studies.page.index import read_studies, verdict_figures, write_study_index
from anaphora.studies.page.study import draw_study_figures, figure_alt, verdict_elements, write_study_page
from anaphora.studies.page.words import axis_value, items_label
from anaphora.studies.records import GroupMeasures, RunRecord
from anaphora.studies.run import terminal_report
from anaphora.studies.summary import summarise


def nothing_is_cut(figure: Figure) -> bool:
    """Return whether all texts of the figure are inside it."""
    figure.canvas.draw()  # only then do labels have their places
    renderer = figure.canvas.get_renderer()  # type: ignore[attr-defined]
    edge = figure.bbox
    boxes = [text.get_window_extent(renderer) for axes in figure.axes for text in axes.texts]
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis) if axes.axison else ():
            low, high = sorted(axis.get_view_interval())
            labels = zip(axis.get_majorticklocs(), axis.get_ticklabels(), strict=True)
            labels_in_view = [label for place, label in labels if low <= place <= high] + [axis.label]
            boxes += [label.get_window_extent(renderer) for label in labels_in_view if label.get_text()]
    return all(box.x0 >= -1 and box.y0 >= -1 and box.x1 <= edge.x1 + 1 and box.y1 <= edge.y1 + 1 for box in boxes)


def index_text(folder: Path) -> str:
    write_study_index(folder, {"en": "index.html"})
    return (folder / "index.html").read_text(encoding="utf-8").replace("\N{NO-BREAK SPACE}", " ")


def test_the_page_on_all_studies_leads_to_the_page_of_each_and_each_lists_its_sections(tmp_path: Path) -> None:
    write_json(tmp_path / "two words" / "study.json", study().to_json())
    assert "two%20words" not in index_text(tmp_path)  # it has no page yet
    result = study()
    write_study_page(tmp_path / "two words" / "study.html", result, draw_study_figures(result))
    assert '<a href="two%20words/study.html">Does it?</a></h2>' in index_text(tmp_path)
    page = (tmp_path / "two words" / "study.html").read_text(encoding="utf-8")
    anchors = re.findall(r'<li><a href="#([^"]*)"', page)
    assert len(anchors) > 3 and anchors == re.findall(r'<section id="([^"]*)"', page)


def test_a_study_without_heads_speaks_of_none(tmp_path: Path) -> None:
    groups: GroupMeasures = {"en": {"all": {"task_accuracy": 0.5, "items": 9.0}}}
    measured = [RunRecord(cell=c.name, seed=0, status="finished", groups=groups, seconds=3.0) for c in cells()]
    result = summarise(plan(seeds=[0], rules=[rule(group="role", at_least=0.5)]), cells(), measured)
    assert answer_sentence(result) == "Open: not everything is measured."
    table = next(line for line in terminal_report(result) if not isinstance(line, str))
    assert table.title == "English: median (lowest to highest) over seeds"
    assert conclusions(result) == [
        "English, all items: no cell solves the task (a median task accuracy of at least 98 %)."
    ]
    figures = draw_study_figures(result)
    assert not any("Hatched" in text.get_text() for text in figures["cells_en"].findobj(Text))
    write_study_page(tmp_path / "study.html", result, figures)
    page = (tmp_path / "study.html").read_text(encoding="utf-8")
    assert "test split" in page
    for words in ("heads chosen", "lignment", "tilde"):
        assert words not in page


def test_a_language_that_a_condition_names_is_shown_where_it_was_not_measured() -> None:
    result = study(rules=[rule(at_least=0.9, languages=["en", "zh"])])
    assert result.verdict.rules[0].passed is None
    [shown] = verdict_elements(result)
    assert isinstance(shown, VerdictElement)
    assert shown.rows[0].rules[0].value.endswith("; Chinese –")
    assert any(
        "(English 99.0 %, Chinese –; needed" in line for line in terminal_report(result) if isinstance(line, str)
    )


def test_a_study_without_conditions_is_not_called_unmeasured() -> None:
    assert answer_sentence(study()) == "Open: this study states no condition."
    undecided = study(rules=[rule(cell="bilinear+one", measure="candidate_accuracy", at_least=0.1)])
    assert answer_sentence(undecided).startswith("Open: not everything is measured")


def test_the_page_needs_nothing_and_answers_question_verdict_and_runs(tmp_path: Path) -> None:
    result = study(rules=[rule(measure="candidate_accuracy", at_least=0.9)])
    write_study_page(tmp_path / "study.html", result, draw_study_figures(result))
    page = (tmp_path / "study.html").read_text(encoding="utf-8")
    assert not re.search(r"https?://(?!www\.w3\.org)", page)
    for sentence in (
        "Does it?",
        "It does.",
        "It holds: 1 of 1 condition, written down",
        '<span class="light yes">',
        "failed: it broke",
        "bilinear + one",
        "~30.0",
    ):
        assert sentence in page, sentence


@pytest.mark.parametrize(("language", "words"), [("en", "Open"), ("zh", "未定")])
def test_a_verdict_that_is_open_is_not_said_to_lack_controls(language: str, words: str, tmp_path: Path) -> None:
    result = study(rules=[rule(measure="candidate_accuracy", cell="bilinear+one", at_least=0.1)])
    with spoken_in(language):
        write_study_page(tmp_path / "study.html", result, {})
    page = (tmp_path / "study.html").read_text(encoding="utf-8")
    (light,) = re.findall(r'<span class="light open">(.*?)</span>', page, re.DOTALL)
    assert light.split()[-1] == words
    assert not re.search("not yet controlled|尚无对照", page)


def test_a_study_of_which_nothing_has_run_still_has_a_page(tmp_path: Path) -> None:
    empty = summarise(plan(seeds=[0]), cells(), not_begun())
    assert draw_study_figures(empty) == {}
    write_study_page(tmp_path / "study.html", empty, {})
    assert "Nothing has been measured yet." in (tmp_path / "study.html").read_text(encoding="utf-8")


def test_the_index_has_every_study_with_its_verdict_and_the_figures_of_its_conditions(tmp_path: Path) -> None:
    numbers: GroupMeasures = {"any": {f"d_k {size}": {"score_variance": float(size)} for size in (4, 8)}}
    measured = [RunRecord(cell=cell.name, seed=0, status="finished", groups=numbers) for cell in cells()]
    rules = [rule(group="d_k 8", measure="score_variance", at_most=1)]
    curve = summarise(plan(name="curve", question="Does it grow?", seeds=[0], rules=rules), cells(), measured)
    empty = summarise(plan(name="empty", question="Who knows?", seeds=[0]), cells(), not_begun())
    for result in (study(rules=[rule(at_least=0.9)]), curve, empty):
        write_json(tmp_path / result.name / "study.json", result.to_json())
    page = index_text(tmp_path)
    assert page.index("Does it grow?") < page.index("Who knows?") < page.index("Does it?")
    for sentence in ("It holds: 1 of 1 condition, written down", "Not so: 1 of 1", "Nothing has been measured yet."):
        assert sentence in page, sentence
    assert page.count("<figure") == 2 and not re.search(r"https?://(?!www\.w3\.org)", page)
    assert list(verdict_figures(curve)) == ["d_k_score_variance"]
    assert list(verdict_figures(study(rules=[rule(at_least=0.9)]))) == ["cells_en"]


def test_studies_of_one_name_in_two_folders_have_their_own_figures_and_places(tmp_path: Path) -> None:
    other = summarise(
        plan(seeds=[0], rules=[rule(at_least=0.9)]), cells(), [record("base", 0, 0.99, 0.95), *not_begun()[1:]]
    )
    for folder, result in (("invented", study(rules=[rule(at_least=0.9)])), ("invented (copy)", other)):
        write_json(tmp_path / folder / "study.json", result.to_json())
    page = index_text(tmp_path)
    ids = re.findall(r' id="([^"]*)"', page)
    assert len(ids) == len(set(ids)) and {"r0-invented", "r0-invented_20__28_copy_29_"} <= set(ids)
    drawn = re.findall(r"<figure.*?</figure>", page, re.DOTALL)
    assert len(drawn) == 2 and ["bilinear" in figure for figure in drawn] == [True, False]


def not_begun() -> list[RunRecord]:
    return [RunRecord(cell=cell.name, seed=0, status="not begun", groups={}) for cell in cells()]


def test_a_figure_of_cells_has_a_row_for_each_that_was_measured_and_its_alt_text_asks_the_question() -> None:
    result = summarise(plan(seeds=[0]), cells(), [record("base", 0, 0.99, 0.9), *not_begun()[1:]])
    drawn = draw_study_figures(result)
    names = {text.get_text() for text in drawn["cells_en"].axes[0].texts}
    assert "base" in names and not names & {"one", "bilinear", "heads"}
    assert figure_alt(result, "cells_en").startswith("English: Does it? Median")


def test_cells_that_do_not_solve_the_task_are_hatched_where_alignment_is_shown() -> None:
    figure = draw_study_figures(study())["cells_en"]
    task, candidate, mass = figure.axes[1:]
    assert [len([patch for patch in axes.patches if patch.get_hatch()]) for axes in (task, candidate, mass)] == [
        0,
        1,
        1,
    ]
    assert nothing_is_cut(figure)


@pytest.mark.parametrize("spoken", ["en", "zh"])
def test_the_title_of_a_figure_names_the_language_and_a_grey_note_says_what_is_drawn(spoken: str) -> None:
    with spoken_in(spoken):
        result = study()
        figure = draw_study_figures(result)["cells_en"]
        texts = {text.get_text(): text for text in figure.axes[0].texts}
        assert [text for text, drawn in texts.items() if float(drawn.get_fontsize()) > style.TEXT] == [
            language_name("en")
        ]
        hatched = _(
            "Median and range over seeds. Hatched: the median task accuracy is below {limit} %, and alignment is not "
            "interpreted."
        )
        limit = f"{100 * result.solved:g}"
        note = hatched.format(limit=limit)
        grey = [text for text, drawn in texts.items() if drawn.get_color() == style.MUTED]
        lines = [line for line in grey if line in note]
        assert (" " if spoken == "en" else "").join(lines) == note
        assert all(texts[line].get_fontweight() == "normal" for line in lines)
        assert _("from {limit} % on, the task counts as solved").format(limit=limit) in texts
    assert figure.get_figwidth() == pytest.approx(style.DOUBLE_COLUMN, abs=0.8)
    assert nothing_is_cut(figure)


def test_chance_is_a_tick_where_guessing_reaches_it_and_stands_in_the_key_where_it_was_measured() -> None:
    chance_key = "chance, in the colour of its cues"
    assert chance_key not in {text.get_text() for text in draw_study_figures(study())["cells_en"].axes[0].texts}
    one = record("base", 0, 0.99, 0.9)
    one.groups["en"]["set"]["chance"] = 0.5
    figure = draw_study_figures(summarise(plan(seeds=[0]), cells()[:1], [one]))["cells_en"]
    assert chance_key in {text.get_text() for text in figure.axes[0].texts}
    ticks = [[line for line in axes.lines if list(line.get_xdata()) == [0.5, 0.5]] for axes in figure.axes[1:]]  # type: ignore[arg-type]
    assert [len(lines) for lines in ticks] == [1, 1, 0]


def test_a_measure_that_runs_along_an_axis_is_drawn_as_a_curve() -> None:
    listed = []
    for cell in cells():
        for seed in range(3):
            one = record(cell.name, seed, 0.9, 0.5, group="distance 0")
            for distance in (3, 6):
                one.groups["en"].update(
                    record("", 0, 0.9 - distance / 50, 0.5, group=f"distance {distance}").groups["en"]
                )
            listed.append(one)
    figures = draw_study_figures(summarise(plan(), cells(), listed))
    figure = figures["distance_task_accuracy"]
    line = next(line for line in figure.axes[1].lines if len(line.get_xdata()) == 3)  # type: ignore[arg-type]
    assert list(line.get_ydata()) == pytest.approx([0.9, 0.84, 0.78])  # type: ignore[arg-type]
    assert figure.axes[1].get_xlabel() == "distance (words)"
    texts = [text.get_text() for text in figure.axes[0].texts]
    assert texts[:2] == ["Task accuracy by distance (words)", "Median and range over seeds."]
    assert nothing_is_cut(figure)


def test_an_axis_with_a_single_position_has_one_tick() -> None:
    listed = [record(cell.name, seed, 0.9, 0.5, group="distance 3") for cell in cells() for seed in range(3)]
    axes = draw_study_figures(summarise(plan(), cells(), listed))["distance_task_accuracy"].axes[1]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["3"]


def test_models_with_something_done_to_them_stand_beside_the_same_as_trained() -> None:
    listed = []
    for cell in cells():
        one = record(cell.name, 0, 0.9, 0.5)
        for place, change in enumerate(("query permuted", "candidates knocked out")):
            one.groups["en"][f"{change}, set"] = {"task_accuracy": 0.2 + place / 10}
        listed.append(one)
    assert "changes" not in draw_study_figures(
        summarise(plan(seeds=[0]), cells(), [record(cell.name, 0, 0.9, 0.5) for cell in cells()])
    )
    figure = draw_study_figures(summarise(plan(seeds=[0]), cells(), listed))["changes"]
    positions = {line.get_xdata()[0] for line in figure.axes[1].lines if line.get_marker() != "None"}  # type: ignore[index]
    assert positions == {0.9, 0.2, 0.3}
    assert "edges from pronoun to candidates knocked out" in {text.get_text() for text in figure.axes[0].texts}
    assert nothing_is_cut(figure)


def test_every_intervention_is_drawn_and_told_apart_however_many_there_are() -> None:
    one = record("base", 0, 0.9, 0.5)
    changes = [f"part {number} permuted" for number in range(14)]
    for number, change in enumerate(changes):
        one.groups["en"][f"{change}, set"] = {"task_accuracy": number / 20}
    figure = draw_study_figures(summarise(plan(seeds=[0]), cells()[:1], [one]))["changes"]
    marks = [line for line in figure.axes[1].lines if line.get_marker() != "None"]
    assert {line.get_xdata()[0] for line in marks} == {0.9, *(number / 20 for number in range(14))}  # type: ignore[index]
    assert len({(line.get_color(), line.get_marker()) for line in marks}) == 15
    assert set(map(items_label, changes)) <= {text.get_text() for text in figure.axes[0].texts}
    assert nothing_is_cut(figure)


@pytest.mark.parametrize("spoken", ["en", "zh"])
def test_a_legend_that_is_wider_than_the_page_goes_on_in_the_next_line(spoken: str) -> None:
    changes = ("candidates knocked out", "all knocked out", "pronoun knocked out", "query permuted", "value permuted")
    one = record("base", 0, 0.9, 0.5)
    for change in changes:
        one.groups["en"][f"{change}, set"] = {"task_accuracy": 0.2}
    with spoken_in(spoken):
        figure = draw_study_figures(summarise(plan(seeds=[0]), cells()[:1], [one]))["changes"]
        names = {items_label(change) for change in changes}
    heights = {text.get_position()[1] for text in figure.axes[0].texts if text.get_text() in names}
    assert len(heights) > 1 if spoken == "en" else heights
    assert figure.get_figwidth() <= style.DOUBLE_COLUMN
    assert nothing_is_cut(figure)


def test_what_grows_a_hundredfold_is_drawn_on_a_scale_of_plain_powers() -> None:
    listed = [
        RunRecord(
            cell=cell.name,
            seed=0,
            status="finished",
            groups={"any": {f"d_k {size}": {"score_variance": float(size)} for size in (4, 32, 256)}},
        )
        for cell in cells()
    ]
    figure = draw_study_figures(summarise(plan(seeds=[0]), cells(), listed))["d_k_score_variance"]
    assert nothing_is_cut(figure)
    axis = figure.axes[1].yaxis
    labels = {text.get_text() for text in axis.get_ticklabels()}
    assert {"10", "100"} <= labels


@pytest.mark.parametrize(
    ("group", "place"), [("distance 3", ("distance", 3.0)), ("d_k 64", ("d_k", 64.0)), ("set", None)]
)
def test_a_group_with_a_number_stands_on_an_axis(group: str, place: object) -> None:
    assert axis_value(group) == place


def test_conclusions_name_what_is_not_solved_and_what_differs() -> None:
    text = " ".join(conclusions(study()))
    assert "3 of 4 cells solve the task (a median task accuracy of at least 98 %); not bilinear + one." in text
    accuracy = "the chosen head’s candidate accuracy is highest with one, 96.0 (95.0 to 97.0) %"
    assert f"{accuracy}, and lowest with bilinear, 41.0" in text
    assert "differs from the base’s" not in text  # by the same in all three seeds, which shows no interval
    varied = [
        record("bilinear", one.seed, 1, 0.4 + one.seed**2 / 50) if one.cell == "bilinear" else one for one in records()
    ]
    text = " ".join(conclusions(summarise(plan(), cells(), varied)))
    # The mean, to which the interval belongs, and not the median of −50, −49 and −44 points.
    assert "candidate accuracy differs from the base’s, in points: bilinear by −47.7 [−55.7, −39.7]" in text


@pytest.mark.parametrize("damage", ["", "{}", "[]", "name", "question", "cells", "verdict", "solved"])
def test_a_damaged_study_is_refused_unless_it_is_the_one_that_is_written_anew(damage: str, tmp_path: Path) -> None:
    whole = study(rules=[rule(at_least=0.9)])
    path = tmp_path / "pairs" / "study.json"
    write_json(path, whole.to_json())
    assert read_studies(tmp_path) == {"pairs": whole}
    path.write_text(json.dumps({**whole.to_json(), damage: [3]}) if damage.isalpha() else damage)
    with pytest.raises(UserError, match=r"study.json.*: .*; run that study again"):
        read_studies(tmp_path)
    assert read_studies(tmp_path, without="pairs") == {}


def test_the_index_shows_a_condition_without_baseline_and_values(tmp_path: Path) -> None:
    result = study(rules=[rule(at_least=0.9)])
    result.verdict.rules[0].spreads["zh"] = None
    write_json(tmp_path / "invented" / "study.json", result.to_json())
    page = index_text(tmp_path)
    assert "Chinese –" in page and "English 99.0 % (99.0 to 99.0)" in page


@pytest.mark.parametrize(
    ("bounds", "candidate", "page_value", "terminal_value"),
    [
        ({"at_least": 0.469}, 0.46875, "46.88 % (46.88 to 46.88)", "46.88 %"),
        ({"at_most": 0.469}, 0.4692, "46.92 % (46.92 to 46.92)", "46.92 %"),
        ({"at_least": 0.4}, 0.46875, "46.9 % (46.9 to 46.9)", "46.9 %"),
    ],
)
def test_a_value_is_never_written_on_the_other_side_of_its_bound(
    bounds: dict[str, float], candidate: float, page_value: str, terminal_value: str, tmp_path: Path
) -> None:
    chosen = plan(seeds=[0], rules=[rule(measure="candidate_accuracy", **bounds)])
    result = summarise(chosen, cells(), [record("base", 0, 0.99, candidate), *not_begun()[1:]])
    assert result.verdict.rules[0].passed is ("at_least" in bounds and bounds["at_least"] < candidate)
    write_study_page(tmp_path / "study.html", result, {})
    page = (tmp_path / "study.html").read_text(encoding="utf-8").replace("\N{NO-BREAK SPACE}", " ")
    assert f"English {page_value}" in page
    assert f"English {terminal_value}" in " ".join(map(str, terminal_report(result)))


def test_a_study_with_a_verdict_that_is_none_is_refused(tmp_path: Path) -> None:
    result = study().to_json()
    result["verdict"]["verdict"] = "maybe"
    write_json(tmp_path / "invented" / "study.json", result)
    with pytest.raises(
        UserError, match=r"verdict \('maybe'\) must be one of holds, not so, open; run that study again"
    ):
        read_studies(tmp_path)

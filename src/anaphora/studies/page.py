"""The page of a study: question, prediction, verdict, figures, tables and plain conclusions in one offline file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anaphora.base.files import write_text
from anaphora.report.numbers import NOT_MEASURED, format_number, format_spread
from anaphora.report.page.elements import (
    FigureElement,
    GroupVerdict,
    NoteElement,
    PageElement,
    RuleResult,
    Section,
    TableElement,
    VerdictElement,
)
from anaphora.report.page.offline import font_placeholder, read_asset, template_environment, with_fonts
from anaphora.report.page.write import inline_svg
from anaphora.report.wording import language_name, phrase
from anaphora.settings.commands.study import ALIGNMENT_MEASURES, is_share
from anaphora.studies.figures import (
    PANEL_MEASURES,
    cells_figure,
    cue_groups,
    interventions_figure,
    measured_languages,
    numeric_axes,
    series_figure,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Study = Mapping[str, Any]
_VERDICT_SIGNS = {"holds": "supported", "not so": "not supported", "open": "not yet controlled"}
"""Signs of the report that a study's verdicts share."""
_VERDICT_WORDS = {"holds": "It holds", "not so": "Not so", "open": "Open"}
_GROUP_NAMES = {"set": phrase("kinds", "set"), "role": phrase("kinds", "role"), "all": "all items"}


def draw_study_figures(study: Study) -> dict[str, Figure]:
    """The figures of a study by name: each language's cells, changed models, and measures that run along an axis."""
    figures: dict[str, Figure | None] = {
        f"cells_{language}": cells_figure(study, language) for language in measured_languages(study)
    }
    figures["changes"] = interventions_figure(study)
    for axis, measures in numeric_axes(study).items():
        for measure in measures:
            figures[f"{axis.replace(' ', '_')}_{measure}"] = series_figure(study, axis, measure)
    return {name: figure for name, figure in figures.items() if figure is not None}


def write_study_page(path: Path, study: Study, figures: Mapping[str, Figure]) -> None:
    """Write a study as one HTML file that needs nothing else; the figures are those of `draw_study_figures`."""
    pictures = {(0, name): inline_svg(figure, f"{name}-") for name, figure in figures.items()}
    runs = [run for cell in study["cells"] for run in cell["runs"]]
    done = sum(run["status"] == "finished" for run in runs)
    seconds = sum(run["seconds"] or 0.0 for run in runs)
    html = template_environment().get_template("study.html.j2").render(
        title=study["question"],
        lead=f"Study {study['name']}. Predicted: {study['prediction']}",
        opening=answer_sentence(study),
        facts=[
            ("runs finished", f"{done} of {len(runs)}"),
            ("cells", str(len(study["cells"]))),
            ("seeds", ", ".join(map(str, study["seeds"]))),
            ("hours of training", format_number(seconds / 3600, 2) if seconds else NOT_MEASURED),
            # What is measured without training has no split and chooses no head.
            *([("measured on", f"{study['split']} split, heads chosen on dev")] if seconds else []),
            ("every cell begins with", " ".join(study["base"]) or "the defaults"),
        ],
        sections=sections(study, figures),
        pictures=pictures,
        style=read_asset("report.css"),
        font_mark=font_placeholder(),
    )  # fmt: skip
    write_text(path, with_fonts(html, html, (400, 700)))


def answer_sentence(study: Study) -> str:
    """The answer in one sentence."""
    verdict = study["verdict"]["verdict"]
    rows = study["verdict"]["rules"]
    if not rows or verdict == "open":
        return "Open: not everything is measured, or runs do not solve the task, so that alignment cannot be compared."
    held = sum(row["passed"] is True for row in rows)
    return (
        f"{_VERDICT_WORDS[verdict]}: {held} of {len(rows)} conditions hold that were written down before anything ran."
    )


def sections(study: Study, figures: Mapping[str, Figure]) -> list[Section]:
    """The page's sections in the order of the argument."""
    pictures: list[PageElement] = [
        FigureElement(
            name=name, figure=figure, alt=f"{_cell_label(name)} of {study['name']}; the tables below hold the numbers"
        )
        for name, figure in figures.items()
    ]
    return [
        Section(
            name="verdict",
            title="Does the claim hold?",
            explanation=(
                "Each condition is about the median over seeds, unless it names the lowest or the highest, "
                "and must hold in every language it names."
            ),
            elements=list(verdict_elements(study)),
            missing="This study states no condition.",
        ),
        Section(
            name="conclusions",
            title="What can be said",
            explanation="Differences are taken seed by seed; in brackets the 95 % interval of their mean over seeds. "
            "Alignment is compared only between runs that both solve the task.",
            elements=[NoteElement(text=text) for text in conclusions(study)],
            missing="No predictions or heads have been measured that could be compared beyond the conditions above.",
        ),
        Section(
            name="figures",
            title="Cell by cell",
            explanation="A mark is the median over seeds, its line the lowest and the highest seed.",
            elements=pictures,
            missing="Nothing has been measured yet.",
        ),
        Section(
            name="cells",
            title="The numbers",
            explanation="Median and, in brackets, the lowest and the highest seed. A tilde marks alignment of a cell "
            "that does not solve the task.",
            elements=list(_cell_tables(study)),
            missing="Nothing has been measured yet.",
        ),
        Section(
            name="interactions",
            title="Do two changes add up?",
            explanation="What both do together, less what each does alone, in points; 0 where they add up.",
            elements=list(_interaction_tables(study)),
            missing="No pair of changes has been measured with its parts.",
        ),
        Section(
            name="runs",
            title="Every run",
            explanation="Runs that failed or are not there yet are listed like the others.",
            elements=[_run_table(study)],
        ),
    ]


def conclusions(study: Study) -> list[str]:
    """What a study's numbers allow one to say, a sentence or two for each language and kind of cue."""
    sentences: list[str] = []
    cells = study["cells"]
    for language in measured_languages(study):
        kinds = dict.fromkeys(kind for cell in cells for kind in cue_groups(cell["groups"].get(language, {})))
        for kind in kinds:
            by_cell = {
                cell["name"]: cell["groups"][language][kind]
                for cell in cells
                if kind in cell["groups"].get(language, {})
            }
            sentences += _group_conclusions(
                f"{language_name(language)}, {_GROUP_NAMES[kind]}", by_cell, study["solved"]
            )
    return sentences


def _group_conclusions(title: str, by_cell: Mapping[str, Any], threshold: float) -> Iterator[str]:
    measured = {name: group for name, group in by_cell.items() if group["is_solved"] is not None}
    solved = [name for name, group in measured.items() if group["is_solved"]]
    if not measured:
        return
    unsolved = [name for name in measured if name not in solved]
    limit = f"{100 * threshold:g} %"
    if not solved:
        yield f"{title}: no cell solves the task (median task accuracy from {limit} on), so alignment is not compared."
        return
    text = f"{title}: {len(solved)} of {len(measured)} cells solve the task (median from {limit} on)"
    yield text + (f"; not {', '.join(_cell_label(name) for name in unsolved)}." if unsolved else ".")
    accuracies = {
        name: measured[name]["measures"]["candidate_accuracy"]
        for name in solved
        if "candidate_accuracy" in measured[name]["measures"]
    }
    if accuracies:
        lowest = min(accuracies, key=lambda name: accuracies[name]["median"])
        highest = max(accuracies, key=lambda name: accuracies[name]["median"])
        text = (
            f"{title}: among them the chosen head's candidate accuracy is highest with {_cell_label(highest)}, "
            f"{_median_and_range(accuracies[highest])} %"
        )
        if lowest != highest:
            text += f", and lowest with {_cell_label(lowest)}, {_median_and_range(accuracies[lowest])} %"
        yield f"{text}."
    for measure in PANEL_MEASURES:
        differences = [
            f"{_cell_label(name)} {_points_with_interval(group['against_base'][measure])}"
            for name, group in measured.items()
            if _excludes_zero(group["against_base"].get(measure))
        ]
        if differences:
            yield f"{title}: {PANEL_MEASURES[measure]} differs from the base's, in points: {'; '.join(differences)}."


def _excludes_zero(difference: Mapping[str, Any] | None) -> bool:
    """Whether the interval of a difference leaves 0 out."""
    ends = difference.get("interval") if difference else None
    return bool(ends) and ends is not None and (ends[0] > 0 or ends[1] < 0)


def _points_with_interval(difference: Mapping[str, Any]) -> str:
    median, low, high = (format_number(100 * value, 1) for value in (difference["median"], *difference["interval"]))
    return f"{median} [{low}, {high}]"


def _median_and_range(spread: Mapping[str, float]) -> str:
    return format_spread(spread["median"], spread["lowest"], spread["highest"])


def _cell_label(cell: str) -> str:
    return cell.replace("+", " + ").replace("_", " ")


def verdict_elements(study: Study) -> Iterator[PageElement]:
    """A study's verdict with all of its conditions; nothing where it states none."""
    rows = study["verdict"]["rules"]
    if not rows:
        return
    rules = [
        RuleResult(
            rule=row["cell"] + (f" − {row['baseline_cell']}" if row["baseline_cell"] else ""),
            question=row["statement"],
            value="; ".join(
                f"{language_name(language)} {format_number(spread['median'], 3)} "
                f"({format_number(spread['lowest'], 3)} to {format_number(spread['highest'], 3)})"
                for language, spread in row["spreads"].items()
            )
            or NOT_MEASURED,
            needed=row["needed"],
            passed=row["passed"],
        )
        for row in rows
    ]
    verdict = study["verdict"]["verdict"]
    yield VerdictElement(columns=[], rows=[GroupVerdict(_VERDICT_WORDS[verdict], _VERDICT_SIGNS[verdict], [], rules)])


def _cell_tables(study: Study) -> Iterator[PageElement]:
    for language in measured_languages(study):
        measures = dict.fromkeys(
            measure
            for cell in study["cells"]
            for group in cell["groups"].get(language, {}).values()
            for measure in group["measures"]
            if measure != "items"
        )
        rows = []
        for cell in study["cells"]:
            for group, summary in cell["groups"].get(language, {}).items():
                solved = NOT_MEASURED if summary["solved"] is None else f"{summary['solved']} of {summary['runs']}"
                values = [_measure_text(summary, measure) for measure in measures]
                rows.append([_cell_label(cell["name"]), _GROUP_NAMES.get(group, group), solved, *values])
        if rows:
            title = f"{language_name(language)}, shares in %"
            names = [PANEL_MEASURES.get(measure, measure.replace("_", " ")) for measure in measures]
            yield TableElement(
                title=title, columns=["cell", "items", "seeds that solve it", *names], rows=rows, texts=2
            )


def _measure_text(group: Mapping[str, Any], measure: str) -> str:
    spread = group["measures"].get(measure)
    if spread is None:
        return NOT_MEASURED
    if not is_share(measure):
        return f"{spread['median']:.3g} ({spread['lowest']:.3g} to {spread['highest']:.3g})"
    mark = "~" if measure in ALIGNMENT_MEASURES and group["is_solved"] is False else ""
    return mark + _median_and_range(spread)


def _interaction_tables(study: Study) -> Iterator[PageElement]:
    rows: list[Sequence[str]] = []
    for row in study["interactions"]:
        if row["group"] in _GROUP_NAMES and row["measure"] in PANEL_MEASURES:
            median, lowest, highest = (format_number(100 * row[name], 1) for name in ("median", "lowest", "highest"))
            ends = row["interval"]
            mean = f"[{format_number(100 * ends[0], 1)}, {format_number(100 * ends[1], 1)}]" if ends else NOT_MEASURED
            rows.append(
                [_cell_label(row["cell"]), language_name(row["language"]), _GROUP_NAMES[row["group"]],
                 PANEL_MEASURES[row["measure"]], f"{median} ({lowest} to {highest})", mean, str(row["pairs"])]
            )  # fmt: skip
    if rows:
        columns = ["cells", "language", "items", "measure", "beyond the sum (points)", "interval of the mean", "seeds"]
        yield TableElement(title="Interactions", columns=columns, rows=rows, texts=4)


def _run_table(study: Study) -> TableElement:
    rows = [
        [
            _cell_label(cell["name"]),
            str(run["seed"]),
            run["status"] + (f": {run['error']}" if run["error"] else ""),
            NOT_MEASURED if run["head"] is None else "-".join(map(str, run["head"])),
            NOT_MEASURED if run["seconds"] is None else format_number(run["seconds"], 0),
            " ".join(cell["overrides"]) or NOT_MEASURED,
        ]
        for cell in study["cells"]
        for run in cell["runs"]
    ]
    columns = ["cell", "seed", "state", "head chosen (layer-head)", "seconds of training", "changes"]
    return TableElement(title="Runs", columns=columns, rows=rows, texts=6, folded=True)

"""The page of a study: question, prediction, verdict, figures, tables and plain conclusions in one offline file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anaphora.files import write_text
from anaphora.report.blocks import Block, Judgement, Note, Picture, Rule, Section, Table, Verdict
from anaphora.report.offline import environment, font_mark, own_file, with_fonts
from anaphora.report.page import _inline
from anaphora.report.spoken import ABSENT, plain, spread
from anaphora.report.study_figures import (
    SHARES,
    axes_of,
    cells_figure,
    changes_figure,
    groups_shown,
    languages_of,
    series_figure,
)
from anaphora.report.tables import LANGUAGES
from anaphora.studies.settings import ALIGNMENT, is_share

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Study = Mapping[str, Any]
_LIGHTS = {"holds": "supported", "not so": "not supported", "open": "not yet controlled"}
"""Signs of the report that a study's verdicts share."""
_SAID = {"holds": "It holds", "not so": "Not so", "open": "Open"}
_KINDS = {"set": "set cues", "role": "role cues", "all": "all items"}


def drawn(study: Study) -> dict[str, Figure]:
    """The figures of a study by name: each language's cells, changed models, and measures that run along an axis."""
    found: dict[str, Figure | None] = {
        f"cells_{language}": cells_figure(study, language) for language in languages_of(study)
    }
    found["changes"] = changes_figure(study)
    for axis, measures in axes_of(study).items():
        for measure in measures:
            found[f"{axis.replace(' ', '_')}_{measure}"] = series_figure(study, axis, measure)
    return {name: figure for name, figure in found.items() if figure is not None}


def write_study_page(path: Path, study: Study, figures: Mapping[str, Figure]) -> None:
    """Write a study as one HTML file that needs nothing else; the figures are those of `drawn`."""
    pictures = {(0, name): _inline(figure, f"{name}-") for name, figure in figures.items()}
    runs = [run for cell in study["cells"] for run in cell["runs"]]
    done = sum(run["status"] == "finished" for run in runs)
    seconds = sum(run["seconds"] or 0.0 for run in runs)
    html = environment().get_template("study.html.j2").render(
        title=study["question"],
        lead=f"Study {study['name']}. Predicted: {study['prediction']}",
        opening=opening(study),
        facts=[
            ("runs finished", f"{done} of {len(runs)}"),
            ("cells", str(len(study["cells"]))),
            ("seeds", ", ".join(map(str, study["seeds"]))),
            ("hours of training", plain(seconds / 3600, 2) if seconds else ABSENT),
            # What is measured without training has no split and chooses no head.
            *([("measured on", f"{study['split']} split, heads chosen on dev")] if seconds else []),
            ("every cell begins with", " ".join(study["base"]) or "the defaults"),
        ],
        sections=sections(study, figures),
        pictures=pictures,
        style=own_file("report.css"),
        font_mark=font_mark(),
    )  # fmt: skip
    write_text(path, with_fonts(html, html, (400, 700)))


def opening(study: Study) -> str:
    """The answer in one sentence."""
    verdict = study["verdict"]["verdict"]
    rows = study["verdict"]["rules"]
    if not rows or verdict == "open":
        return "Open: not all of it is measured, or runs do not solve the task, so that alignment cannot be read."
    held = sum(row["passed"] is True for row in rows)
    return f"{_SAID[verdict]}: {held} of {len(rows)} conditions hold that were written down before anything ran."


def sections(study: Study, figures: Mapping[str, Figure]) -> list[Section]:
    """The page's sections in the order of the argument."""
    pictures: list[Block] = [
        Picture(name=name, figure=figure, alt=f"{_said(name)} of {study['name']}; the tables below hold the numbers")
        for name, figure in figures.items()
    ]
    read = conclusions(study)
    return [
        Section(
            name="verdict",
            title="Does the claim hold?",
            explanation=(
                "Each condition is about the median over seeds, unless it says lowest or highest, and must hold in "
                "every language it names."
            ),
            blocks=list(verdict_blocks(study)),
            missing="This study states no condition.",
        ),
        Section(
            name="conclusions",
            title="What can be said",
            explanation="Differences are taken seed by seed; in brackets the 95 % interval of their mean over seeds. "
            "Alignment is compared only between runs that both solve the task.",
            blocks=[Note(text=text) for text in read],
            missing="No answers or heads have been measured that could be compared beyond the conditions above.",
        ),
        Section(
            name="figures",
            title="Cell by cell",
            explanation="A mark is the median over seeds, its line the lowest and the highest seed.",
            blocks=pictures,
            missing="Nothing has been measured yet.",
        ),
        Section(
            name="cells",
            title="The numbers",
            explanation="Median and, in brackets, the lowest and the highest seed. A tilde marks alignment of a cell "
            "that does not solve the task.",
            blocks=list(_tables(study)),
            missing="Nothing has been measured yet.",
        ),
        Section(
            name="interactions",
            title="Do two changes add up?",
            explanation="What both do together, less what each does alone, in points; 0 where they add up.",
            blocks=list(_interactions(study)),
            missing="No pair of changes has been measured with its parts.",
        ),
        Section(
            name="runs",
            title="Every run",
            explanation="Runs that failed or are not there yet are listed like the others.",
            blocks=[_runs(study)],
        ),
    ]


def conclusions(study: Study) -> list[str]:
    """What a study's numbers allow one to say, a sentence or two for each language and kind of cue."""
    said: list[str] = []
    cells = study["cells"]
    for language in languages_of(study):
        kinds = dict.fromkeys(kind for cell in cells for kind in groups_shown(cell["groups"].get(language, {})))
        for kind in kinds:
            found = {
                cell["name"]: cell["groups"][language][kind]
                for cell in cells
                if kind in cell["groups"].get(language, {})
            }
            where = f"{LANGUAGES.get(language, language)}, {_KINDS[kind]}"
            said += _of_kind(where, found, study["solved"])
    return said


def _of_kind(where: str, found: Mapping[str, Any], threshold: float) -> Iterator[str]:
    told = {name: one for name, one in found.items() if one["is_solved"] is not None}
    solved = [name for name, one in told.items() if one["is_solved"]]
    if not told:
        return
    unsolved = [name for name in told if name not in solved]
    limit = f"{100 * threshold:g} %"
    if not solved:
        yield f"{where}: no cell solves the task (median task accuracy from {limit} on), so no alignment is read."
        return
    text = f"{where}: {len(solved)} of {len(told)} cells solve the task (median from {limit} on)"
    yield text + (f"; not {', '.join(_said(name) for name in unsolved)}." if unsolved else ".")
    pointing = {
        name: told[name]["measures"]["candidate_accuracy"]
        for name in solved
        if "candidate_accuracy" in told[name]["measures"]
    }
    if pointing:
        least = min(pointing, key=lambda name: pointing[name]["median"])
        most = max(pointing, key=lambda name: pointing[name]["median"])
        text = f"{where}: among them the chosen head points best with {_said(most)}, {_ranged(pointing[most])} %"
        yield text + (f", and worst with {_said(least)}, {_ranged(pointing[least])} %." if least != most else ".")
    for measure in SHARES:
        moved = [
            f"{_said(name)} {_points(one['against_base'][measure])}"
            for name, one in told.items()
            if _clear(one["against_base"].get(measure))
        ]
        if moved:
            yield f"{where}: {SHARES[measure]} differs from the base's, in points: {'; '.join(moved)}."


def _clear(difference: Mapping[str, Any] | None) -> bool:
    """Whether the interval of a difference leaves 0 out."""
    ends = difference.get("interval") if difference else None
    return bool(ends) and ends is not None and (ends[0] > 0 or ends[1] < 0)


def _points(difference: Mapping[str, Any]) -> str:
    low, high = difference["interval"]
    return f"{plain(100 * difference['median'], 1)} [{plain(100 * low, 1)}, {plain(100 * high, 1)}]"


def _ranged(one: Mapping[str, float]) -> str:
    return spread(one["median"], one["lowest"], one["highest"])


def _said(cell: str) -> str:
    return cell.replace("+", " + ").replace("_", " ")


def verdict_blocks(study: Study) -> Iterator[Block]:
    """A study's verdict with all of its conditions; nothing where it states none."""
    rows = study["verdict"]["rules"]
    if not rows:
        return
    rules = [
        Rule(
            rule=row["cell"] + (f" − {row['against']}" if row["against"] else ""),
            question=row["says"],
            value="; ".join(
                f"{LANGUAGES.get(language, language)} {plain(one['median'], 3)} "
                f"({plain(one['lowest'], 3)} to {plain(one['highest'], 3)})"
                for language, one in row["found"].items()
            )
            or ABSENT,
            needed=row["needed"],
            passed=row["passed"],
        )
        for row in rows
    ]
    verdict = study["verdict"]["verdict"]
    yield Verdict(columns=[], rows=[Judgement(_SAID[verdict], _LIGHTS[verdict], [], rules)])


def _tables(study: Study) -> Iterator[Block]:
    for language in languages_of(study):
        measures = dict.fromkeys(
            measure
            for cell in study["cells"]
            for group in cell["groups"].get(language, {}).values()
            for measure in group["measures"]
            if measure != "items"
        )
        rows = []
        for cell in study["cells"]:
            for group, found in cell["groups"].get(language, {}).items():
                solved = ABSENT if found["solved"] is None else f"{found['solved']} of {found['runs']}"
                values = [_value(found, measure) for measure in measures]
                rows.append([_said(cell["name"]), _KINDS.get(group, group), solved, *values])
        if rows:
            title = f"{LANGUAGES.get(language, language)}, shares in %"
            names = [SHARES.get(measure, measure.replace("_", " ")) for measure in measures]
            yield Table(title=title, columns=["cell", "items", "seeds that solve it", *names], rows=rows, texts=2)


def _value(found: Mapping[str, Any], measure: str) -> str:
    one = found["measures"].get(measure)
    if one is None:
        return ABSENT
    if not is_share(measure):
        return f"{one['median']:.3g} ({one['lowest']:.3g} to {one['highest']:.3g})"
    mark = "~" if measure in ALIGNMENT and found["is_solved"] is False else ""
    return mark + _ranged(one)


def _interactions(study: Study) -> Iterator[Block]:
    rows: list[Sequence[str]] = []
    for one in study["interactions"]:
        if one["group"] in _KINDS and one["measure"] in SHARES:
            ends = one["interval"]
            said = (
                f"{plain(100 * one['median'], 1)} ({plain(100 * one['lowest'], 1)} to {plain(100 * one['highest'], 1)})"
            )
            mean = f"[{plain(100 * ends[0], 1)}, {plain(100 * ends[1], 1)}]" if ends else ABSENT
            rows.append(
                [_said(one["cell"]), LANGUAGES.get(one["language"], one["language"]), _KINDS[one["group"]],
                 SHARES[one["measure"]], said, mean, str(one["pairs"])]
            )  # fmt: skip
    if rows:
        columns = ["cells", "language", "items", "measure", "beyond the sum (points)", "interval of the mean", "seeds"]
        yield Table(title="Interactions", columns=columns, rows=rows, texts=4)


def _runs(study: Study) -> Table:
    rows = [
        [
            _said(cell["name"]),
            str(run["seed"]),
            run["status"] + (f": {run['error']}" if run["error"] else ""),
            ABSENT if run["head"] is None else "-".join(map(str, run["head"])),
            ABSENT if run["seconds"] is None else plain(run["seconds"], 0),
            " ".join(cell["overrides"]) or ABSENT,
        ]
        for cell in study["cells"]
        for run in cell["runs"]
    ]
    columns = ["cell", "seed", "state", "head chosen (layer-head)", "seconds of training", "changes"]
    return Table(title="Runs", columns=columns, rows=rows, texts=6, folded=True)

"""What the report says, section by section: numbers of a run in, questions, figures and tables in plain words out.

Nothing here knows of HTML: the page lays the sections out. A part of the metrics that is missing or null gives a
section that says that it was not measured.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.colors import to_hex

from anaphora.analysis.scores import Head
from anaphora.analysis.verdict import SCOPE
from anaphora.report import evidence_figures as drawn
from anaphora.report import figures, pictures, style
from anaphora.report.blocks import (
    Block,
    Cell,
    Grid,
    Judgement,
    Note,
    Picture,
    ReportRun,
    Rule,
    Sample,
    Samples,
    Section,
    Table,
    Verdict,
    Word,
)
from anaphora.report.comparison import comparison
from anaphora.report.evidence_figures import CONTROLS, EDGES, EFFECTS, MAPS, SCOPES, groups
from anaphora.report.packing import unpack_map
from anaphora.report.spoken import ABSENT, counted, percent, plain, probability, ranged, spread, valued, with_minus
from anaphora.report.tables import LANGUAGES, honest_sentence

PERTURBATIONS = {
    "cue_masked": "the cue’s words",
    "context_removed": "all but pronoun and candidates",
    "names_replaced": "the candidates’ names, for others",
    "no_positions": "positions",
}


def sections(run: ReportRun, sentences: Sequence[Cell]) -> list[Section]:
    """The sections of one run in the order of the argument.

    Args:
        run: what is known of the run.
        sentences: the explorer's; examples are taken from them.
    """
    metrics = run.metrics
    return [
        _verdict(metrics),
        _scoreboard(metrics),
        _heads(run),
        _quads(run),
        _effects(metrics),
        _knock_out(metrics),
        _ablation(metrics),
        _patch(metrics),
        _dose_response(metrics),
        _controls(metrics),
        _baselines(metrics),
        _emergence(run),
        _roles(metrics),
        _maps(metrics),
        _factors(metrics),
        _examples(metrics, sentences),
    ]


def side_by_side(runs: Sequence[ReportRun], divergences: Sequence[Cell] = ()) -> Section:
    """Several runs: the verdict of each, median and spread of the measures, and how far their rows are apart."""
    blocks: list[Block] = []
    labels = list(dict.fromkeys(label for run in runs for label, *_ in _judged(run.metrics)))
    if labels:
        verdicts = [
            {label: cell.get("verdict") or ABSENT for label, _, _, cell in _judged(run.metrics)} for run in runs
        ]
        rows = [[label, *(found.get(label, ABSENT) for found in verdicts)] for label in labels]
        blocks.append(
            Table(title="Verdicts", columns=["", *(run.name for run in runs)], rows=rows, texts=len(runs) + 1)
        )
    scored = [{"languages": languages} for run in runs if (languages := _scored(run.metrics))]
    if len(scored) > 1:
        names = {"task_accuracy": "task", "candidate_accuracy": "candidate", "quad_accuracy": "quad",
                 "antecedent_mass": "mass", "random_init": "untrained", "chance": "chance"}  # fmt: skip
        rows = [
            [
                _label(row["language"], row["kind"]),
                *(spread(*(row[f"{name}{end}"] for end in ("", "_lowest", "_highest"))) for name in names),
            ]
            for row in comparison(scored)
        ]
        title = "Median over runs, and in brackets the lowest and the highest, in %"
        blocks.append(Table(title=title, columns=["", *names.values()], rows=rows))
    if divergences:
        rows = [
            [f"{one['run']} – {one['other']}", LANGUAGES.get(one["language"], one["language"]),
             valued(one["divergence"], one["interval"])]
            for one in divergences
        ]  # fmt: skip
        title = "How far the rows of the chosen heads are apart (Jensen-Shannon): 0 is the same, 1 no word in common"
        blocks.append(Table(title=title, columns=["runs", "", "bits"], rows=rows, texts=2))
    return Section(
        name="runs",
        title=f"{len(runs)} runs side by side",
        explanation="Runs differ in their random start and order of data. Their heads are not aligned, so scores are "
        "put together here and head numbers never are.",
        blocks=blocks,
    )


def opening(metrics: Cell) -> str:
    """The sentence that one may say about the run; empty where it was not scored."""
    languages, head = _scored(metrics), metrics.get("head")
    if not languages or not head:
        return ""
    known = {"split": metrics.get("split") or "test", "head": {"chosen_on": "dev", **head}, "languages": languages}
    return honest_sentence(known)


def facts(run: ReportRun) -> list[tuple[str, str]]:
    """What the run is: name and value of a few facts."""
    metrics, protocol = run.metrics, run.metrics.get("protocol") or {}
    head = metrics.get("head") or {}
    items = [found for whole in (metrics.get("languages") or {}).values() if (found := _at(whole, "items"))]
    seconds = metrics.get("train_seconds")
    found = [
        ("run", run.name),
        ("seed", metrics.get("seed")),
        ("split", protocol.get("split") or metrics.get("split")),
        ("items", f"{sum(items):,}" if items else None),
        (
            "head",
            f"layer {head['layer']} head {head['head']}, chosen on {head.get('chosen_on', 'dev')}" if head else None,
        ),
        ("untrained models", metrics.get("untrained_models")),
        ("training", f"{seconds / 60:.0f} min" if seconds else None),
    ]
    return [(name, str(value)) for name, value in found if value not in (None, "")]


_VERDICT_COLUMNS = ("candidate accuracy, %", "chance, %", "cut antecedent − matched, points", "twins flipped, %")
_KIND_NAMES = {**drawn.KINDS, "all": "all cues", "": "all cues"}


def _verdict(metrics: Cell) -> Section:
    rows = []
    for label, language, kind, cell in _judged(metrics):
        measured = ((metrics.get("languages") or {}).get(language) or {}).get(kind) or {}
        causal = _at(metrics, "causal", "languages", language, kind) or {}
        scope = _at(causal, "knock_out", SCOPE) or {}
        flipped = _at(causal, "patch", SCOPE) or {}
        spans = _at(measured, "intervals", "candidate_accuracy")
        numbers = [
            percent(measured.get("candidate_accuracy"), spans),
            percent(measured.get("chance")),
            percent(_at(scope, "gold_minus_matched", "value"), _at(scope, "gold_minus_matched", "interval")),
            percent(flipped.get("flipped"), flipped.get("interval")),
        ]
        rules = [
            Rule(
                one.get("rule") or "",
                one.get("question") or "",
                valued(one.get("value"), one.get("interval")),
                one.get("needed") or "",
                one.get("passed"),
            )
            for one in cell.get("rows") or []
        ]
        rows.append(Judgement(label, cell.get("verdict") or "not yet controlled", numbers, rules))
    blocks: list[Block] = [Verdict(columns=_VERDICT_COLUMNS, rows=rows)] if rows else []
    protocol = metrics.get("protocol")
    if protocol:
        asked = [
            _words(protocol.get("metric")),
            MAPS.get(protocol.get("map") or "", _words(protocol.get("map"))),
            _words(protocol.get("direction")),
            f"{protocol.get('split')} split",
            f"significance level {protocol.get('alpha')}",
        ]
        fixed = ", ".join(str(one) for one in asked if one)
        blocks.append(Note(text=f"Protocol: {fixed}. Its hash, with the run’s settings: {protocol.get('hash')}."))
    return Section(
        name="verdict",
        title="The answer",
        explanation="Do pronouns attend to their antecedents, and does the model’s answer depend on it? “Supported” "
        "needs every rule to hold; open a line to see them all, failed ones too.",
        blocks=blocks,
    )


def _scoreboard(metrics: Cell) -> Section:
    blocks: list[Block] = []
    languages = metrics.get("languages") or {}
    scored = _scored(metrics)
    if scored:
        named = list(_cells(languages))
        said = "; ".join(
            f"{label}: task accuracy {percent(cell.get('task_accuracy'))} %, candidate accuracy "
            f"{percent(cell.get('candidate_accuracy'))} %, chance {percent(cell.get('chance'))} %"
            for label, _, _, cell in named
        )
        blocks.append(
            Picture(name="scoreboard", figure=pictures.scoreboard({**metrics, "languages": scored}), alt=said)
        )
        rows = []
        for label, language, kind, cell in named:
            more = _at(metrics, "more_scores", language, kind or "all") or {}
            spans = cell.get("intervals") or {}
            rows.append(
                [
                    label,
                    counted(cell.get("items")),
                    *(percent(cell.get(name), spans.get(name)) for name in
                      ("task_accuracy", "candidate_accuracy", "quad_accuracy", "open_accuracy", "antecedent_mass")),
                    plain(cell.get("lift"), 1),
                    percent(more.get("mass_per_token")),
                    plain(more.get("mrr"), 2),
                    plain(more.get("mas"), 2),
                    plain(_at(more, "agreement", "kappa"), 2),
                    percent(more.get("reverse_candidate_accuracy")),
                    probability(_at(metrics, "significance", language, kind, "p_holm")),
                ]
            )  # fmt: skip
        columns = ["", "items", "task, %", "candidate, %", "quad, %", "among all words, %", "mass, %", "lift, times",
                   "mass per token, %", "reciprocal rank", "MAS", "kappa", "candidate to pronoun, %",
                   "p, corrected"]  # fmt: skip
        blocks.append(Table(title="All scores, 95 % intervals in brackets", columns=columns, rows=rows, folded=True))
    return Section(
        name="scoreboard",
        title="Where does the pronoun look?",
        explanation="Task accuracy is how often the model names the antecedent; candidate accuracy is how often the "
        "chosen head gives the antecedent more weight than every other candidate. Ticks mark what luck, the best "
        "shortcut and untrained models reach.",
        blocks=blocks,
    )


def _heads(run: ReportRun) -> Section:
    blocks: list[Block] = []
    head = run.metrics.get("head")
    for language, scores in run.heads.items():
        if not head:
            break
        cell = (run.metrics.get("languages") or {}).get(language) or {}
        threshold = _at(cell, "baselines", "random_init_95")
        values = np.asarray(scores, dtype=np.float64)
        place = (head["layer"], head["head"])
        name = LANGUAGES.get(language, language)
        figure = drawn.contoured_grid(values, cell.get("chance") or 0.0, threshold, place, f"{name}, development split")
        above = "" if threshold is None else f"; {int((values > threshold).sum())} of {values.size} heads are above "\
            f"{percent(threshold)} %, which 95 % of untrained models do not reach"  # fmt: skip
        said = f"{name}: candidate accuracy {percent(float(values[place]))} % at the chosen head{above}."
        blocks.append(Picture(name=f"heads_{language}", figure=figure, alt=said))
    p, alpha = _at(run.metrics, "heads_on_development", "p"), _at(run.metrics, "protocol", "alpha")
    if p and alpha:
        listed = [f"{layer}-{place}" for layer, row in enumerate(p) for place, one in enumerate(row) if one < alpha]
        blocks.append(
            Note(
                text=f"Better than relabelled antecedents on the development split, p < {alpha:g} after correction for "
                f"being able to pick the best of {sum(map(len, p))} heads: {', '.join(listed) or 'none'}."
            )
        )
    return Section(
        name="heads",
        title="Which heads do it?",
        explanation="Candidate accuracy of every head. One head is chosen here, on the development split; all other "
        "numbers come from sentences that had no part in the choice.",
        blocks=blocks,
    )


def _quads(run: ReportRun) -> Section:
    blocks: list[Block] = []
    for number, (title, cells) in enumerate(run.quads):
        said = f"{title}: " + " ".join(f"“{' '.join(cell.words)}”" for cell in cells)
        blocks.append(Picture(name=f"quad_{number}", figure=figures.quad(cells, title), alt=said))
    return Section(
        name="quads",
        title="The same words, another reading",
        explanation="Each block asks the same scene four times: the cue changes who is meant, and the order changes "
        "who comes first. Attention that follows meaning moves with the cue and stays when only the order changes.",
        blocks=blocks,
        missing="No blocks were given for this run.",
    )


def _effects(metrics: Cell) -> Section:
    part = metrics.get("effects")
    figure = drawn.effects(part)
    blocks: list[Block] = []
    if figure:
        said, rows = [], []
        for label, _, _, cell in groups(part):
            shown = [f"{name} {plain(_at(cell, key, 'value'), 2)}" for key, name in EFFECTS.items()]
            said.append(f"{label}: {', '.join(shown)}")
        for label, _, _, cell in _cells(part or {}):
            bits = [valued(_at(cell, key, "value"), _at(cell, key, "interval")) for key in EFFECTS]
            rows.append([label, *bits, counted(_at(cell, "meaning", "blocks"))])
        blocks = [
            Picture(name="effects", figure=figure, alt="; ".join(said)),
            Table(title="The numbers", columns=["", *EFFECTS.values(), "blocks"], rows=rows, folded=True),
        ]
    return Section(
        name="effects",
        title="Meaning, position or a favourite word?",
        explanation="The weight on one candidate less that on the other, taken apart: how far it follows the right "
        "answer (meaning), whoever stands first (position), or always the same candidate (entity). 1 is the most "
        "there can be, 0 is none.",
        blocks=blocks,
    )


def _knock_out(metrics: Cell) -> Section:
    part = metrics.get("causal")
    figure = drawn.knock_out(part)
    blocks: list[Block] = []
    if figure:
        said, rows = [], []
        for label, _, _, cell in groups(_at(part, "languages")):
            for scope, name in SCOPES.items():
                cuts = _at(cell, "knock_out", scope) or {}
                gap = cuts.get("gold_minus_matched") or {}
                if scope in ("head", SCOPE) and _at(cuts, "gold", "drop") is not None:
                    said.append(f"{label}, {name}: antecedent {percent(cuts['gold']['drop'])} points, "
                                f"{percent(gap.get('value'))} more than the matched edge that hurts most")  # fmt: skip
                for edge, spoken in EDGES.items():
                    one = cuts.get(edge)
                    if one:
                        rows.append([label, name, spoken, percent(one.get("drop"), one.get("interval")),
                                     percent(one.get("mass_removed"))])  # fmt: skip
                if gap.get("value") is not None:
                    rows.append([label, name, "antecedent − worst matched",
                                 percent(gap["value"], gap.get("interval")), ""])  # fmt: skip
        columns = ["", "where", "edge cut", "task accuracy lost, points", "mass removed, %"]
        blocks = [
            Picture(name="knock_out", figure=figure, alt="; ".join(said)),
            Table(title="The numbers, with the weight that each cut removes", columns=columns, rows=rows, texts=3,
                  folded=True),
        ]  # fmt: skip
    return Section(
        name="knock-out",
        title="Does the answer depend on that edge?",
        explanation="One edge from the pronoun is closed and the model answers again. If it uses the edge to the "
        "antecedent, closing that one costs much and closing edges as strong or as near costs little. Lines are 95 % "
        "intervals.",
        blocks=blocks,
    )


def _ablation(metrics: Cell) -> Section:
    part = metrics.get("causal")
    figure = drawn.ablation(part)
    blocks: list[Block] = []
    if figure:
        said = []
        rows = []
        for label, _, _, cell in groups(_at(part, "languages")):
            steps = _at(cell, "heads", "cumulative") or []
            if steps:
                last = steps[-1]
                said.append(f"{label}: {percent(last.get('drop'))} points with {last['k']} heads, random heads "
                            f"{percent(_at(last, 'random', 'median'))}")  # fmt: skip
            rows += [
                [label, counted(one.get("k")), _heads_named(one.get("heads")), percent(one.get("drop")),
                 percent(_at(one, "random", "median")),
                 ranged(_at(one, "random", "lowest"), _at(one, "random", "highest"))]
                for one in steps
            ]  # fmt: skip
        columns = ["", "heads silenced", "layer.head", "lost, points", "random, median", "random, lowest to highest"]
        blocks = [
            Picture(name="ablation", figure=figure, alt="; ".join(said)),
            Table(title="The numbers", columns=columns, rows=rows, folded=True),
        ]
    singles = [
        [label, f"{one.get('layer')}.{one.get('head')}", str(one.get("mode")),
         percent(one.get("drop"), one.get("interval"))]
        for label, _, _, cell in groups(_at(part, "languages"))
        for one in _at(cell, "heads", "single") or []
    ]  # fmt: skip
    if singles:
        columns = ["", "layer.head", "replaced by", "task accuracy lost, points"]
        blocks.append(Table(title="One head at a time", columns=columns, rows=singles, texts=3, folded=True))
    return Section(
        name="ablation",
        title="Does the model need those heads?",
        explanation="Heads are silenced one after the other, the best first. A model may keep spare heads that step "
        "in, so the curve is read against as many random heads of the same layers.",
        blocks=blocks,
    )


def _patch(metrics: Cell) -> Section:
    part = metrics.get("causal")
    figure = drawn.patch(part)
    blocks: list[Block] = []
    if figure:
        rows = []
        for label, _, _, cell in groups(_at(part, "languages")):
            found = cell.get("patch") or {}
            flips = {name: found.get(name) or {} for name in ("head", "layer", "everywhere")}
            shown = [percent(one.get("flipped"), one.get("interval")) for one in flips.values()]
            rows.append([label, counted(found.get("pairs")), counted(found.get("skipped")), *shown])
        said = "; ".join(
            f"{label}: {head} % by the chosen head, {layer} % by its layer, {every} % by all"
            for label, _, _, head, layer, every in rows
        )
        flipped_by = [f"flipped by {heads}, %" for heads in ("the chosen head", "its layer", "all heads")]
        columns = ["", "twins", "left out", *flipped_by]
        blocks = [
            Picture(name="patch", figure=figure, alt=said),
            Table(title="The numbers", columns=columns, rows=rows, folded=True),
        ]
    return Section(
        name="patch",
        title="Does the pattern alone carry the decision?",
        explanation="The pronoun’s weights are replaced by those it has in the twin sentence, where the other "
        "candidate is right; nothing else is touched. The answer should then become the twin’s.",
        blocks=blocks,
    )


def _dose_response(metrics: Cell) -> Section:
    part = metrics.get("causal")
    figure = drawn.dose_response(part)
    blocks: list[Block] = []
    if figure:
        rows = [
            [label, MAPS.get(name, name), valued(one.get("rho"), one.get("interval"))]
            for label, _, _, cell in groups(_at(part, "languages"))
            for name, one in (cell.get("dose_response") or {}).items()
            if one
        ]
        said = "; ".join(f"{label}, {name}: {value}" for label, name, value in rows)
        columns = ["", "map", "Spearman’s rho"]
        blocks = [
            Picture(name="dose_response", figure=figure, alt=said),
            Table(title="The numbers", columns=columns, rows=rows, texts=2, folded=True),
        ]
    return Section(
        name="dose-response",
        title="Is a stronger edge a more important edge?",
        explanation="For every edge that was cut: does a larger score go with a larger loss? A map that explains the "
        "model should say yes.",
        blocks=blocks,
    )


def _controls(metrics: Cell) -> Section:
    part = metrics.get("controls")
    rows = []
    for name in dict.fromkeys([*CONTROLS, *(part or {})]):
        one = (part or {}).get(name)
        title = CONTROLS.get(name, name)
        if not one:
            rows.append([title, "not run yet", "", ""])
            continue
        expected = {True: "as expected", False: "not as expected"}.get(one.get("as_expected"), ABSENT)
        rows.append([title, expected, one.get("expected") or "", one.get("seen") or ""])
    blocks: list[Block] = []
    figure = drawn.controls(part, metrics)
    if figure:
        said = "; ".join(f"{name}: {seen or expected}" for name, expected, _, seen in rows)
        blocks.append(Picture(name="controls", figure=figure, alt=said))
    columns = ["", "result", "what should happen", "what happened"]
    blocks.append(Table(title="Trained controls", columns=columns, rows=rows, texts=4))
    blocks += _perturbed(metrics.get("perturbations"))
    return Section(
        name="controls",
        title="What would a model do that cannot look?",
        explanation="Models of the same data, steps and stopping with one thing taken away. Where a control does as "
        "well as the run, the claim that attention matters rests on the other tests alone.",
        blocks=blocks,
    )


def _perturbed(part: Cell | None) -> list[Block]:
    """The same trained model on sentences from which something was taken."""
    rows = [
        [
            PERTURBATIONS[name],
            label,
            percent(cell.get("task_accuracy")),
            percent(cell.get("candidate_accuracy"), cell.get("interval")),
            percent(cell.get("chance")),
        ]
        for name, languages in (part or {}).items()
        for label, _, _, cell in groups(languages)
    ]
    columns = ["taken away at test time", "", "task, %", "candidate, %", "chance, %"]
    title = "The same model, its sentences without what decides"
    return [Table(title=title, columns=columns, rows=rows, texts=2)] if rows else []


def _baselines(metrics: Cell) -> Section:
    blocks: list[Block] = []
    named = list(_cells(metrics.get("languages") or {}))
    names = list(dict.fromkeys(name for _, _, _, cell in named for name in cell.get("baselines") or {}))
    if names:
        spoken = {"random_init": "untrained models, mean", "random_init_95": "untrained models, 95th percentile"}
        rows = [
            [spoken.get(name, name.replace("_", " ")), *(percent(_at(cell, "baselines", name)) for *_, cell in named)]
            for name in names
        ]
        ours = [percent(cell.get("candidate_accuracy")) for *_, cell in named]
        rows.insert(0, ["candidate accuracy of the head", *ours])
        columns = ["candidate accuracy, %", *(label for label, *_ in named)]
        blocks.append(Table(title="Baselines", columns=columns, rows=rows))
    return Section(
        name="baselines",
        title="What do luck and shortcuts reach?",
        explanation="Rules that look at no attention: the nearest candidate, the first, the subject, the words as a "
        "bag, and so on. In a balanced corpus position and favourite words get no further than chance.",
        blocks=blocks,
    )


def _emergence(run: ReportRun) -> Section:
    blocks: list[Block] = []
    head = run.metrics.get("head")
    chances = [_at(cell, "chance") for cell in (run.metrics.get("languages") or {}).values()]
    known = [chance for chance in chances if chance is not None]
    if head and known and run.validations:
        name = f"attention_pointing/layer_{head['layer']}_head_{head['head']}"
        figure = pictures.emergence(
            [dict(one) for one in run.validations], Head(head["layer"], head["head"]), float(np.mean(known))
        )
        if figure:
            first, last = run.validations[0], run.validations[-1]
            said = (
                f"Candidate accuracy of layer {head['layer']} head {head['head']} goes from "
                f"{percent(first.get(name))} % at step {first['step']:,.0f} to {percent(last.get(name))} % at step "
                f"{last['step']:,.0f}."
            )
            blocks.append(Picture(name="emergence", figure=figure, alt=said))
    return Section(
        name="emergence",
        title="When does it appear?",
        explanation="Candidate accuracy of every head during training, beside the accuracy of the model’s answers.",
        blocks=blocks,
    )


def _roles(metrics: Cell) -> Section:
    found = metrics.get("head_roles") or []
    blocks: list[Block] = []
    chosen = metrics.get("head") or {}
    if found:
        places = {(one["layer"], one["head"]): one for one in found}
        heads = sorted({head for _, head in places})
        rows = []
        for layer in sorted({layer for layer, _ in places}):
            cells = []
            for head in heads:
                one = places.get((layer, head)) or {}
                told = _role_numbers(one)
                cells.append((one.get("roles") or [], told, (layer, head) == (chosen.get("layer"), chosen.get("head"))))
            rows.append((layer, cells))
        blocks.append(Grid(heads=heads, rows=rows))
    return Section(
        name="roles",
        title="What do the other heads do?",
        explanation="Of the pronoun’s rows alone. Positional: in 90 % of them the largest weight lies the same number "
        "of tokens back or ahead. Special: half of the weight is on marks such as [CLS]. Predicate: half of the "
        "largest weights are on the cue’s words. Antecedent: ten points above the best shortcut. The bar marks the "
        "chosen head.",
        blocks=blocks,
    )


def _maps(metrics: Cell) -> Section:
    part = metrics.get("maps")
    figure = drawn.maps(part)
    blocks: list[Block] = []
    if figure:
        rows = []
        for name, one in (part or {}).items():
            cells = {language: kinds for language, kinds in (one or {}).items() if language in LANGUAGES or
                     (isinstance(kinds, Mapping) and language != "head")}  # fmt: skip
            unit = " ".join(f"{key} {value}" for key, value in ((one or {}).get("head") or {}).items())
            for label, _, _, cell in groups(cells):
                rows.append([MAPS.get(name, name), unit or "whole model", label,
                             percent(cell.get("candidate_accuracy"), cell.get("interval")),
                             percent(cell.get("antecedent_mass"))])  # fmt: skip
        said = "; ".join(f"{name}, {label}: candidate accuracy {value} %" for name, _, label, value, _ in rows)
        columns = ["map", "unit", "", "candidate accuracy, %", "mass, %"]
        blocks = [
            Picture(name="maps", figure=figure, alt=said),
            Table(title="The numbers", columns=columns, rows=rows, texts=3, folded=True),
        ]
    return Section(
        name="maps",
        title="Do other kinds of map agree?",
        explanation="Raw weights are the headline, fixed beforehand. The others ask the same of what is really sent, "
        "of all layers together, or of what the answer reacts to; each at the unit that did best in development, raw "
        "weights at the head of the headline.",
        blocks=blocks,
    )


def _factors(metrics: Cell) -> Section:
    blocks: list[Block] = []
    for name, figure in (
        ("strata", drawn.strata(metrics.get("strata"))),
        ("factors", drawn.factors(metrics.get("factors"))),
    ):
        rows = list(_factor_rows(metrics, name))
        if figure:
            said = "; ".join(f"{group}, {language}, {value}: candidate accuracy {candidate} %"
                             for group, language, value, _, _, candidate, *_ in rows)  # fmt: skip
            columns = ["", "", "", "items", "task, %", "candidate, %", "mass, %", "chance, %"]
            blocks += [
                Picture(name=name, figure=figure, alt=said),
                Table(title="The numbers", columns=columns, rows=rows, texts=3, folded=True),
            ]
    worst = _worst_templates(metrics)
    if worst:
        columns = ["template", "language", "items", "task, %", "candidate, %"]
        blocks.append(Table(title="The templates where the head does worst", columns=columns, rows=worst, texts=2))
    return Section(
        name="strata",
        title="Where does it work, and where not?",
        explanation="The same two accuracies by type of cue, gender, number, distance and number of candidates, and "
        "for items that the headline leaves out: the pronoun first, names never seen, fillers as antecedents.",
        blocks=blocks,
    )


def _examples(metrics: Cell, sentences: Sequence[Cell]) -> Section:
    head = metrics.get("head") or {}
    wanted = [
        ("Right: the head points at the antecedent and the model answers rightly", True, True),
        ("The head points elsewhere, the answer is right all the same", True, False),
        ("The head points at the antecedent, the answer is wrong", False, True),
        ("Wrong: both the head and the answer", False, False),
        ("The head points at the antecedent; the model gives no answer", None, True),
        ("The head points elsewhere; the model gives no answer", None, False),
    ]
    blocks: list[Block] = []
    languages = dict.fromkeys(one["language"] for one in sentences)
    for title, answered, pointed in wanted:
        chosen: list[Cell] = []
        for language in languages:
            fitting = [one for one in sentences if one["language"] == language
                       and one.get("right") is answered and bool(one.get("head_right")) == pointed]  # fmt: skip
            chosen += fitting[:2]
        shown = [_sample(one, head.get("layer", 0), head.get("head", 0)) for one in chosen]
        if shown:
            blocks.append(Samples(title=title, sentences=shown))
    return Section(
        name="examples",
        title="Right and wrong, sentence by sentence",
        explanation="The first sentences of each sort, not the prettiest. Shading is the pronoun’s weight at the "
        "chosen head.",
        blocks=blocks,
        missing="No sentences were given.",
    )


def _sample(sentence: Cell, layer: int, head: int) -> Sample:
    weights = unpack_map(sentence["maps"]["raw"]) if "raw" in sentence["maps"] else None
    words = sentence["words"]
    pronoun = sentence["pronoun"]
    row = (
        np.zeros(len(words))
        if weights is None
        else weights[min(layer, len(weights) - 1)][head % weights.shape[1]][pronoun]
    )
    roles = {place: "other" for entry in sentence["distractors"] for place in entry}
    roles |= {place: "antecedent" for entry in sentence["antecedents"] for place in entry}
    roles[pronoun] = "pronoun"
    drawn_words = []
    for place, (word, weight) in enumerate(zip(words, row, strict=True)):
        if place in (sentence.get("special") or ()):
            continue
        paint = style.WEIGHTS(min(float(weight), 1.0))
        share = f"{weight:.2f}" if weight >= 0.015 else ""
        drawn_words.append(Word(word, to_hex(paint), style.ink_on(paint), roles.get(place, ""), share))
    said = " · ".join(str(sentence[name]) for name in ("kind", "type") if sentence.get(name))
    return Sample(sentence["language"], sentence["id"], drawn_words, said, str(sentence.get("answer") or ABSENT))


def _role_numbers(one: Cell) -> str:
    bits = []
    if _at(one, "positional", "share") is not None:
        offset = one["positional"].get("offset") or 0
        where = f"{abs(offset)} {'back' if offset < 0 else 'ahead'}" if offset else "on itself"
        bits.append(f"{percent(one['positional']['share'])} % {where}")
    bits += [f"{name} {percent(one[name])} %" for name in ("special", "predicate") if one.get(name) is not None]
    gain = _at(one, "antecedent", "accuracy_over_best_baseline")
    if gain is not None:
        bits.append(f"antecedent {with_minus(f'{100 * gain:+.0f}')} points")
    return " · ".join(bits)


def _factor_rows(metrics: Cell, part: str) -> Iterator[list[str]]:
    if part == "strata":
        for language, cells in (metrics.get("strata") or {}).items():
            for name, cell in (cells or {}).items():
                spans = _at(cell, "intervals", "candidate_accuracy")
                yield _factor_row("stratum", language, name, cell or {}, spans)
        return
    for factor, languages in (metrics.get("factors") or {}).items():
        for language, cells in (languages or {}).items():
            for cell in cells or [] if factor != "template" else []:
                yield _factor_row(factor, language, str(cell.get("value")), cell, cell.get("interval"))


def _factor_row(group: str, language: str, value: str, cell: Cell, span: Sequence[float] | None) -> list[str]:
    return [
        group, LANGUAGES.get(language, language), value.replace("_", " "), counted(cell.get("items")),
        percent(cell.get("task_accuracy")), percent(cell.get("candidate_accuracy"), span),
        percent(cell.get("antecedent_mass")), percent(cell.get("chance")),
    ]  # fmt: skip


def _worst_templates(metrics: Cell, most: int = 5) -> list[list[str]]:
    rows: list[list[str]] = []
    for language, whole in (metrics.get("languages") or {}).items():
        cells = _at(metrics, "factors", "template", language) or []
        known = [
            {**cell, "template": cell.get("value")} for cell in cells if cell.get("candidate_accuracy") is not None
        ]
        known.sort(key=lambda cell: cell["candidate_accuracy"])
        alone = _at(whole, "worst_template")
        shown = known[:most] or ([alone] if alone else [])
        name = LANGUAGES.get(language, language)
        rows += [
            [str(cell.get("template")), name, counted(cell.get("items")), percent(cell.get("task_accuracy")),
             percent(cell.get("candidate_accuracy"), cell.get("interval"))]
            for cell in shown
        ]  # fmt: skip
    return rows


def _judged(metrics: Cell) -> Iterator[tuple[str, str, str, Any]]:
    for label, language, kind, cell in groups(metrics.get("verdict")):
        if isinstance(cell, Mapping):
            yield label, language, kind, cell


def _cells(languages: Cell) -> Iterator[tuple[str, str, str, Cell]]:
    """(label, language, kind, cell) of each language as a whole and of its kinds; the whole has the kind ""."""
    for language, whole in languages.items():
        if not whole:
            continue
        yield LANGUAGES.get(language, language), language, "", whole.get("all") or whole
        for kind in drawn.KINDS:
            if whole.get(kind):
                yield _label(language, kind), language, kind, whole[kind]


def _scored(metrics: Cell) -> dict[str, Any]:
    """The languages whose headline is known, with all that the tables and the scoreboard ask of a cell."""
    return {name: cell for name, whole in (metrics.get("languages") or {}).items() if (cell := _complete(whole))}


def _complete(whole: Cell | None) -> dict[str, Any] | None:
    if not whole or whole.get("chance") is None or whole.get("candidate_accuracy") is None:
        return None
    known = {name: value for name, value in (whole.get("baselines") or {}).items() if value is not None}
    kinds = {kind: cell for kind in drawn.KINDS if (cell := _complete(whole.get(kind)))}
    others = {name: value for name, value in whole.items() if name not in drawn.KINDS}
    return {"task_accuracy": None, **others, "baselines": known, "intervals": whole.get("intervals") or {}, **kinds}


def _label(language: str, kind: str) -> str:
    name = LANGUAGES.get(language, language)
    return f"{name}, {_KIND_NAMES[kind]}" if kind in drawn.KINDS else name


def _at(cell: Any, *names: str) -> Any:
    """What stands at the end of a path of keys; None where a key is missing or null."""
    for name in names:
        if not isinstance(cell, Mapping):
            return None
        cell = cell.get(name)
    return cell


def _words(name: str | None) -> str | None:
    return name.replace("_", " ") if name else None


def _heads_named(heads: Sequence[Sequence[int]] | None) -> str:
    return ", ".join(f"{layer}.{head}" for layer, head in heads or [])

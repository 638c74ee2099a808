"""What the scripts do with a stored run, one function each: answer, extract, score, plot, describe, compare."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from rich import box
from rich.console import Console
from rich.status import Status
from rich.table import Table

from anaphora import question
from anaphora.analysis import classification
from anaphora.analysis.baselines import by_factor, by_kind, per_item
from anaphora.analysis.capture import answers, is_right, look, whole_maps
from anaphora.analysis.record import AttentionRecord
from anaphora.analysis.scores import Head, score
from anaphora.analysis.settings import Analysis, Comparison, Description
from anaphora.analysis.study import Study, study
from anaphora.analysis.summary import heads_frame, templates
from anaphora.analysis.words import word_map
from anaphora.checkpoint import Layout, Run, load, run_directories, training_record
from anaphora.config import Config, read
from anaphora.data.batch import Encoded
from anaphora.data.controlled.describe import table as describe_table
from anaphora.data.corpora.division import ReadingReport
from anaphora.data.example import SPLITS, Example, whole_blocks
from anaphora.data.settings import Data, Divided, LabelledText, PlainText, Silver, Texts
from anaphora.data.store import load as load_corpus
from anaphora.data.store import origin_of
from anaphora.data.text import Text, thinned
from anaphora.errors import UserError
from anaphora.files import held, write_json, write_text
from anaphora.model.settings import Label, NoReadout, check_length
from anaphora.place import beside_training
from anaphora.report import pictures
from anaphora.report.comparison import comparison, comparison_table, read_metrics
from anaphora.report.rows import write_rows
from anaphora.report.tables import LANGUAGES, headline, honest_sentence
from anaphora.report.write import save, write_table

console = Console(width=max(100, Console().width))
"""Wide enough for the headline table, also where the output goes to a file."""


@dataclass(frozen=True)
class Material:
    """The examples that a command works on."""

    training: list[Example]
    development: list[Example]
    measured: list[Example]
    split: str


def evaluate(asked: Analysis) -> None:
    """Answer every item of a split: task accuracy by language, kind of cue and type, the worst template named."""
    run = load(asked.run, asked.trainer)
    if isinstance(asked.data or run.config.data, Texts):
        evaluate_texts(run, asked)
        return
    material = material_of(run, asked)
    data, batching, readout = encode(run, material.measured), run.config.batching, run.config.task.readout
    rows: list[dict[str, Any]] = []
    if run.resolver.encoder.has_maps:
        seen = look(run.resolver, data, batching, readout)
        found, correct = seen.answers, seen.correct
        scores = score(seen.records)
        rows = templates(scores, head_asked(asked) or Head(0, 0), correct[scores.kept])
    else:
        found = answers(run.resolver, data, batching, readout)
        correct = np.array([is_right(answer, one) for answer, one in zip(found, material.measured, strict=True)])
    told = [
        {
            "item": number,
            "text": one.text,
            "answer": int(answer),
            "antecedents": list(one.antecedents),
            "correct": bool(right),
        }
        for number, (one, answer, right) in enumerate(zip(material.measured, found, correct, strict=True))
    ]
    folder = output_of(asked, run, "evaluation")
    write_json(folder / f"{material.split}_answers.json", told)
    table = Table(title=f"{run.name}: task accuracy, {material.split} split", title_justify="left")
    for name in ("language", "kind", "type", "stratum", "items", "accuracy", "worst template"):
        table.add_column(name, justify="right" if name in ("items", "accuracy") else "left")
    for row in accuracy_rows(material.measured, correct):
        table.add_row(*(f"{value:.3f}" if isinstance(value, float) else str(value) for value in row.values()))
    if rows:
        write_table(folder / f"{material.split}_templates.csv", rows)
    console.print(table)
    console.print(f"answers{' and templates' if rows else ''}: {folder}", soft_wrap=True)


def evaluate_texts(run: Run, asked: Analysis) -> None:
    """Label every text of a split beside a bag of words, or tell how well hidden words are guessed."""
    source = asked.data or run.config.data
    corpus = load_corpus(source)
    limit = asked.items or run.config.trainer.limit_items
    training, development = (corpus.texts(name) for name in ("train", "dev"))
    texts = thinned(corpus.texts(asked.split), limit)
    if not texts:
        raise UserError(f"split ({asked.split}) holds no texts")
    if isinstance(run.config.task.readout, NoReadout):
        reached, hidden = classification.perplexity(run, texts)
        console.print(f"{run.name}: perplexity of {hidden} hidden tokens, {asked.split} split: {reached:.2f}")
        return
    if not isinstance(source, LabelledText) or not isinstance(run.config.task.readout, Label):
        asks = f"task.readout={run.config.task.readout.kind}"
        raise UserError(f"{run.directory}: the run's {asks} has no answer to data={source.kind}")
    names = classification.labels_of(run)
    said = [names[number] for number in classification.label_answers(run, texts)]
    with console.status("fitting the bag of words on the training split"):
        bag = classification.bag_of_words(training, development, texts)
    rows = classification.label_rows(texts, said, bag)
    folder = output_of(asked, run, "evaluation")
    told = [
        {"item": number, "text": one.text, "label": one.label, "answer": answer, "bag_of_words": other}
        for number, (one, answer, other) in enumerate(zip(texts, said, bag, strict=True))
    ]
    write_json(folder / f"{asked.split}_answers.json", told)
    write_table(folder / f"{asked.split}_labels.csv", rows)
    table = Table(title=f"{run.name}: accuracy, {asked.split} split, 95 % intervals over texts", title_justify="left")
    for name in ("label", "texts", "this run", "bag of words", "this run - bag of words"):
        table.add_column(name, justify="left" if name == "label" else "right")
    for row in rows:
        cells = [_with_interval(row, name) for name in ("accuracy", "bag", "more")]
        table.add_row(row["label"], str(row["texts"]), *cells)
    console.print(table)
    console.print(f"answers and accuracies: {folder}", soft_wrap=True)


def _with_interval(row: Mapping[str, Any], name: str) -> str:
    ends = (row[f"{name}_low"], row[f"{name}_high"])
    return f"{row[name]:.3f}" + ("" if None in ends else f" [{ends[0]:.3f}, {ends[1]:.3f}]")


def accuracy_rows(examples: Sequence[Example], correct: Any) -> list[dict[str, Any]]:
    """Task accuracy of every cell of language, kind, type and stratum."""
    cells: dict[tuple[str, ...], list[int]] = {}
    for number, one in enumerate(examples):
        key = (one.language, *(one.factors.get(name, "") for name in ("kind", "type", "stratum")))
        cells.setdefault(key, []).append(number)
    rows = []
    for (language, kind, cue, stratum), items in sorted(cells.items()):
        by_template: dict[str, list[float]] = {}
        for item in items:
            by_template.setdefault(examples[item].factors.get("template", ""), []).append(float(correct[item]))
        worst, hits = min(by_template.items(), key=lambda entry: sum(entry[1]) / len(entry[1]))
        named = f"{worst} {sum(hits) / len(hits):.2f}" if worst else ""
        accuracy = float(sum(correct[item] for item in items) / len(items))
        rows.append(
            {
                "language": language,
                "kind": kind,
                "type": cue,
                "stratum": stratum,
                "items": len(items),
                "accuracy": accuracy,
                "worst_template": named,
            }
        )
    return rows


def extract(asked: Analysis) -> None:
    """Write the pronouns' rows of every layer and head as Parquet."""
    run = load(asked.run, asked.trainer)
    if asked.text is not None:
        examples, name = [question.example_of(asked)], "sentence"
    else:
        material = material_of(run, asked)
        examples, name = material.measured, material.split
    seen = look(run.resolver, encode(run, examples), run.config.batching, run.config.task.readout)
    path = output_of(asked, run, "attention") / f"{name}.parquet"
    write_rows(path, seen.records)
    layers, heads, _ = seen.records[0].weights.shape
    console.print(f"{len(seen.records)} items x {layers} layers x {heads} heads: {path}", soft_wrap=True)


def score_heads(asked: Analysis) -> Study:
    """Choose a head on development, measure it on the split, write `metrics.json` and tables, print the headline."""
    run = load(asked.run, asked.trainer)
    with console.status("reading the data") as status:
        found = study_of(run, asked, status)
    write_scores(found, output_of(asked, run, ""))
    print_headline(found.metrics())
    return found


def plot(asked: Analysis) -> None:
    """Draw one sentence, or the figures of a run's scores."""
    run = load(asked.run, asked.trainer)
    if asked.text is not None:
        paths = plot_sentence(run, asked)
    else:
        with console.status("reading the data") as status:
            found = study_of(run, replace(asked, untrained=0), status)
        paths = plot_study(found, found.metrics(), output_of(asked, run, "figures"), asked.formats)
    for path in paths:
        console.print(str(path), soft_wrap=True)


def describe(asked: Description) -> None:
    """Print a corpus's counts, what was dropped, and how far every shortcut gets on its test split."""
    started = time.perf_counter()
    corpus = load_corpus(asked.data)
    if isinstance(asked.data, Texts):
        texts = {name: corpus.texts(name) for name in SPLITS}
        describe_texts(texts, corpus.report, time.perf_counter() - started, asked)
        return
    splits = {name: corpus.examples(name) for name in SPLITS}
    seconds = time.perf_counter() - started
    counts = describe_table(splits)
    console.print(_plain_table("items", counts))
    _print_reading(f"{sum(map(len, splits.values()))} items", corpus.report, seconds, asked.data)
    rows: list[dict[str, Any]] = []
    if splits["test"]:
        with console.status("fitting the shortcuts on the training split"):
            results = per_item(splits["train"], splits["test"])
        rows = [asdict(one) for one in by_kind(results, splits["test"])]
        console.print(_plain_table("shortcuts on the test split, 95 % intervals over templates, else groups", rows))
        factors = by_factor(results, splits["test"])
        if factors:
            console.print(_plain_table("the same by factor", factors))
    else:
        console.print("no test split: no shortcut is measured (data.test_share)")
    if not splits["train"]:
        console.print("no training split: there are no learned shortcuts (data.test_share, data.dev_share)")
    if asked.output:
        write_table(Path(asked.output) / "counts.csv", counts)
        write_table(Path(asked.output) / "shortcuts.csv", rows)
        console.print(f"tables {asked.output}", soft_wrap=True)


def describe_texts(
    splits: Mapping[str, Sequence[Text]], report: ReadingReport, seconds: float, asked: Description
) -> None:
    """Print how many texts, words and characters each split and label has, what was dropped and how long it took."""
    counts = []
    for split, texts in splits.items():
        for label in sorted({one.label or "" for one in texts}):
            here = [one.text for one in texts if (one.label or "") == label]
            words = sum(len(text.split()) for text in here)
            cells = {"texts": len(here), "words": words, "characters": sum(map(len, here))}
            counts.append({"split": split, "label": label, **cells})
    console.print(_plain_table("texts; words stand between blanks", counts))
    _print_reading(f"{sum(map(len, splits.values()))} texts", report, seconds, asked.data)
    if asked.output:
        write_table(Path(asked.output) / "counts.csv", counts)
        console.print(f"tables {asked.output}", soft_wrap=True)


def _print_reading(found: str, report: ReadingReport, seconds: float, data: Data) -> None:
    """Where a corpus comes from, on what terms, how much of it was read in what time, and what was dropped."""
    if isinstance(data, Divided):
        also = data.also if isinstance(data, PlainText | Silver) else []
        console.print(f"source: {', '.join((data.path, *also))}", soft_wrap=True, markup=False)
    licence = origin_of(data).licence
    if licence:
        console.print(f"licence as stated: {licence} (docs/corpora.md)", soft_wrap=True)
    console.print(f"read: {found} from {report.rows} rows in {seconds:.1f} s")
    for reason, number in report.reasons.items():
        console.print(f"dropped: {number} rows ({reason})", soft_wrap=True, markup=False)


def _plain_table(title: str, rows: Sequence[Mapping[str, Any]]) -> Table:
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 0), pad_edge=False)
    said = [name for name in (rows[0] if rows else ()) if any(row[name] not in ("", None) for row in rows)]
    for name in said:
        value = rows[0][name]
        table.add_column(name.replace("_", "\n"), justify="left" if isinstance(value, str) else "right", no_wrap=True)
    for row in rows:
        table.add_row(*(_written(row[name]) for name in said))
    return table


def _written(value: Any) -> str:
    if value is None:
        return "–"
    return f"{value:.3f}" if isinstance(value, float) else str(value)


def compare(asked: Comparison) -> None:
    """Print the median and spread of every measure over several runs, and keep them as CSV where a file is named."""
    rows = comparison(read_metrics(run_directories(asked.runs)))
    console.print(comparison_table(rows))
    if asked.output:
        write_table(Path(asked.output), rows)
        console.print(f"table {asked.output}", soft_wrap=True)


def alike(stored: Config, asked: Config) -> bool:
    """Whether two runs have the same settings, where they go and on what they run aside."""
    here = asked.trainer
    if (stored.trainer.limit_steps, stored.trainer.limit_items) != (here.limit_steps, here.limit_items):
        return False
    return replace(stored, name=None, output="", trainer=here) == replace(asked, name=None, output="")


def trained(config: Config, otherwise: str, say: Callable[[str], None] | None = None) -> Run:
    """The finished run of these settings: re-used as it lies there, resumed where it was stopped, or trained.

    Args:
        config: with the name of its directory.
        otherwise: what to do where the directory holds a run of other settings.
        say: is told which of the three it is; by default it is printed.

    Raises:
        UserError: the directory holds a run of other settings, or the training cannot begin.
    """
    assert config.name is not None
    directory = Path(config.output) / config.name
    layout = Layout(directory)
    tell = say or partial(console.print, soft_wrap=True)
    if layout.config.exists() and not alike(read(layout.config), config):
        raise UserError(f"{directory} holds a run of other settings; {otherwise}")
    if layout.weights.exists():
        tell(f"{directory}: finished; its weights are re-used")
        return load(directory, beside_training(config.trainer.device))

    from anaphora.training.run import train

    if layout.config.exists():
        tell(f"{directory}: unfinished; it is resumed")
        train(replace(config, resume=str(directory)))
    else:
        tell(f"{directory}: training")
        train(config)
    return load(directory, beside_training(config.trainer.device))


def measuring_code() -> str:
    """A digest of the code that measures, so that what older code measured is known as such."""
    code = hashlib.sha256()
    for path in sorted((Path(__file__).parent / "analysis").glob("*.py")):
        code.update(path.read_bytes())
    return code.hexdigest()[:16]


def weights_digest(run: Run) -> str:
    """A digest of a run's weights."""
    return hashlib.sha256(Layout(run.directory).weights.read_bytes()).hexdigest()[:16]


def plot_sentence(run: Run, asked: Analysis) -> list[Path]:
    """The heat map and the pronoun's row of one sentence."""
    example = question.example_of(asked)
    head = head_asked(asked) or stored_head(run)
    encode(run, [example])  # refuses a text that the model cannot hold
    tokens, maps = whole_maps(run.resolver, run.tokenizer, example, run.config.task.readout)
    within = [place for place, covered in enumerate(tokens.spans) if place in tokens.covering(example.pronoun)]
    record = AttentionRecord(example, tokens.spans, tokens.words, maps[:, :, within].mean(axis=2))
    folder = output_of(asked, run, "figures") / "sentence"
    return pictures.sentence_pictures(record, word_map(maps, tokens.words), head, folder, asked.formats)


def plot_study(found: Study, metrics: dict[str, Any], folder: Path, formats: Sequence[str]) -> list[Path]:
    """The figures of a run: scoreboard, head grids, blocks, rows right and wrong, and alignment through training."""
    head, measured = found.head, found.measured
    paths = save(pictures.scoreboard(metrics), folder / "scoreboard", formats)
    for language in metrics["languages"]:
        grid = pictures.grid(measured, language, head, found.split)
        paths += save(grid, folder / f"heads_{language}", formats)
        for kind in pictures.KINDS:
            block = pictures.example_quad(measured, language, kind)
            if block:
                quad = pictures.quad_picture([found.seen.records[item] for item in block], head)
                paths += save(quad, folder / f"quad_{language}_{kind}", formats)
        for name, item in pictures.right_and_wrong(measured, head, language).items():
            record = found.seen.records[int(measured.kept[item])]
            paths += save(pictures.row_picture(record, head), folder / f"row_{language}_{name}", formats)
            if name == "right":
                _, maps = whole_maps(
                    found.run.resolver, found.run.tokenizer, record.example, found.run.config.task.readout
                )
                figure = pictures.map_picture(record, word_map(maps, record.words), head)
                paths += save(figure, folder / f"heat_map_{language}", formats)
    history = training_record(found.run.directory).get("validations", [])
    emergence = pictures.emergence(history, head, pictures.mean_chance(found.development))
    if emergence is not None:
        paths += save(emergence, folder / "alignment_through_training", formats)
    return paths


def material_of(run: Run, asked: Analysis) -> Material:
    """The splits that a command works on; the data are the run's own unless the command names others."""
    source: Data = asked.data or run.config.data
    if isinstance(source, Texts):
        told = f"data={source.kind}" if asked.data else f"this run answers no pronoun question: its data={source.kind}"
        raise UserError(
            f"{told} holds texts without pronoun questions; name others, for instance data=gap data.path=..."
        )
    corpus = load_corpus(source)
    limit = asked.items or run.config.trainer.limit_items
    splits = {}
    for name in ("train", "dev", asked.split):
        found = corpus.examples(name)
        splits[name] = whole_blocks(found, limit) if limit else found
    if not splits[asked.split]:
        raise UserError(f"split ({asked.split}) holds no items")
    return Material(splits["train"], splits["dev"], splits[asked.split], asked.split)


def encode(run: Run, examples: Sequence[Example]) -> Encoded:
    """Examples as the run's model reads them."""
    encoded = Encoded(examples, run.tokenizer)
    check_length(run.config.model, encoded.longest())
    return encoded


def head_asked(asked: Analysis) -> Head | None:
    """The head that a command names, if it does."""
    return None if asked.layer is None or asked.head is None else Head(asked.layer, asked.head)


def output_of(asked: Analysis, run: Run, folder: str) -> Path:
    """Where a command's files go."""
    return Path(asked.output) if asked.output else run.directory / folder


def study_of(run: Run, asked: Analysis, status: Status) -> Study:
    """The study that a command asks for."""
    material = material_of(run, asked)
    return study(
        run,
        material.training,
        material.development,
        material.measured,
        asked.split,
        asked.untrained,
        head_asked(asked),
        status.update,
    )


def stored_head(run: Run) -> Head:
    """The head that was chosen on the development split.

    Raises:
        UserError: none has been chosen yet.
    """
    path = Layout(run.directory).metrics
    if not path.exists():
        raise UserError(
            f"{path}: no head has been chosen yet; name one with layer=... head=..., "
            f"or choose it with scripts/score_attention.py run={run.directory}"
        )
    head = json.loads(path.read_text(encoding="utf-8"))["head"]
    return Head(int(head["layer"]), int(head["head"]))


def scores_file(directory: Path, split: str) -> Path:
    """Where the scores of a split stand."""
    return directory / ("metrics.json" if split == "test" else f"metrics_{split}.json")


def read_scores(directory: Path, split: str) -> dict[str, Any]:
    """The scores of a split as they were written; empty where there are none."""
    path = scores_file(directory, split)
    return dict(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else {}


def write_scores(found: Study, folder: Path, metrics: dict[str, Any] | None = None) -> None:
    """Write `metrics.json` and the tables of heads and templates.

    Args:
        found: what was measured.
        folder: where to.
        metrics: the scores with the evidence; by default the scores, with the evidence that stands in the file
            already if that is about the same head and as many items.
    """
    if metrics is None:
        metrics, known = found.metrics(), read_scores(folder, found.split)
        if all(_about(known, name) == _about(metrics, name) for name in ("head", "languages", "untrained_models")):
            metrics = {**known, **metrics}
    with held(found.run.directory):
        write_json(scores_file(folder, found.split), metrics)
        write_table(
            folder / "tables" / f"templates_{found.split}.csv",
            templates(found.measured, found.head, found.task_correct),
        )
        write_text(folder / "tables" / f"heads_{found.split}.csv", heads_frame(found.measured).to_csv(index=False))
        write_text(folder / "tables" / "heads_dev.csv", heads_frame(found.development).to_csv(index=False))


def _about(metrics: Mapping[str, Any], name: str) -> Any:
    """What evidence must be about to stay: the same head, as many items and as many untrained models."""
    part = metrics.get(name)
    return {language: whole["items"] for language, whole in part.items()} if name == "languages" and part else part


def print_headline(metrics: dict[str, Any]) -> None:
    """Print the headline table, the sentence that says what it shows, and what was left out."""
    console.print(headline(metrics))
    console.print(honest_sentence(metrics))
    for language, whole in metrics["languages"].items():
        worst = whole.get("worst_template")
        if worst and worst["task_accuracy"] is not None:
            console.print(
                f"{LANGUAGES.get(language, language)}: worst template {worst['template']}, "
                f"task accuracy {worst['task_accuracy']:.2f} on {worst['items']} items"
            )
    for reason, count in metrics["dropped"].items():
        console.print(f"left out: {count} items ({reason})")

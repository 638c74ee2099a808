"""Write a run as the folder shipped with the package: python -m experiments.shipped.package run=outputs/NAME."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anaphora.base.errors import UserError
from anaphora.base.files import atomic_directory, write_json, write_text
from anaphora.cli import run_program
from anaphora.runs.shipped import SHIPPED, write_release
from experiments.shipped.scores import (
    SCORES,
    RunScores,
    calibration_sentence,
    edge_sentence,
    print_scores,
    score_sentences,
    shown_interval,
)
from experiments.shipped.settings import TEST_SET, Packaging

if TYPE_CHECKING:
    from anaphora.runs.directory import Run

MOST_BYTES = 16_000_000
"""Maximum size of the weights in bytes."""
_KEPT = ("metrics.json", "heads_dev.csv")
"""Score files to keep; the other tables have a row for each sentence."""


@dataclass(frozen=True)
class Text:
    """Training corpus of the run."""

    name: str
    licence: str


@dataclass(frozen=True)
class Facts:
    """Facts that are not in a run directory, from the file in the setting `facts`.

    Attributes:
        name: name of the model on its card.
        licence: licence of the weights, as written on the Hub.
        commands: training commands in order.
        limits: limitations, one sentence each.
        texts: training corpora.
    """

    name: str
    licence: str
    commands: tuple[str, ...]
    limits: tuple[str, ...]
    texts: tuple[Text, ...]


def work(settings: Packaging) -> None:
    """Write the folder, with scores of the rounded weights and a digest of its files; raise UserError if it exists."""
    from anaphora.base.console import say
    from anaphora.runs.directory import load

    output = Path(settings.output)
    if output.exists():
        raise UserError(f"output ({output}) exists already; remove it, for what is there belongs to another release")
    facts = read_facts(Path(settings.facts))
    run = load(settings.run)
    with atomic_directory(output) as draft:
        write_run(run, draft)
        scores = score_sentences(str(draft), Path(settings.sentences), draft)
        keep_only_heads(draft)
        write_json(draft / SCORES, asdict(scores))
        write_temperatures(draft, scores)
        write_text(draft / "README.md", card(run, facts, scores))
        check_free_of_paths(draft, (str(run.directory.resolve().parent), run.config.output, *data_folders(run)))
        release = write_release(draft)
    print_scores(scores)
    say(f"{output}: release {release.digest}, {sum(file.stat().st_size for file in output.rglob('*'))} bytes")


def read_facts(path: Path) -> Facts:
    """Read facts from a TOML file.

    Raises:
        UserError: the file does not exist, or a field is missing or of another type.
    """
    import tomllib

    from anaphora.base.checks import shape_problem

    try:
        stored = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(f"facts ({path}): not readable as TOML ({error})") from None
    shape = {"name": str, "licence": str, "commands": [str], "limits": [str], "texts": [{"name": str, "licence": str}]}
    if problem := shape_problem(stored, shape):
        raise UserError(f"facts ({path}): {problem}")
    texts = tuple(Text(one["name"], one["licence"]) for one in stored["texts"])
    return Facts(stored["name"], stored["licence"], tuple(stored["commands"]), tuple(stored["limits"]), texts)


def write_run(run: Run, folder: Path) -> None:
    """Write settings (without folders), tokenizer, training record and 16-bit weights.

    Raises:
        UserError: the file of the weights is too large, or a weight is too large for 16 bits.
    """
    import numpy as np

    from anaphora.base.files import file_digest
    from anaphora.base.tensors import write_arrays
    from anaphora.runs.directory import RunFiles, distinct_tensors, save_settings
    from anaphora.runs.published import without_folders

    layout = RunFiles(folder)
    save_settings(layout, replace(without_folders(run.config), name=SHIPPED), run.tokenizer)
    with np.errstate(over="ignore"):
        halves = {name: tensor.numpy().astype(np.float16) for name, tensor in distinct_tensors(run.model).items()}
    for name, values in halves.items():
        if not np.isfinite(values).all():
            raise UserError(f"{run.files.weights}: {name} holds a number that is too large for 16 bits")
    write_arrays(layout.weights, halves, {layout.tokenizer.name: file_digest(layout.tokenizer)})
    size = layout.weights.stat().st_size
    if size > MOST_BYTES:
        raise UserError(f"{run.files.weights}: {size:,} bytes in numbers of 16 bits; at most {MOST_BYTES:,} may ship")
    if run.files.training.exists():
        shutil.copyfile(run.files.training, layout.training)


def keep_only_heads(folder: Path) -> None:
    """Remove tables with a row for each sentence from the scores of each language."""
    for path in [path for path in folder.glob("*/**/*") if path.is_file() and path.name not in _KEPT]:
        path.unlink()


def write_temperatures(folder: Path, scores: RunScores) -> None:
    """Write the temperature of each language, which calibrates the probabilities of the answers."""
    from anaphora.analysis.evidence.storage import write_calibration
    from anaphora.runs.directory import load

    temperatures = {one.language: one.temperature for one in scores.calibration}
    write_calibration(load(folder), temperatures, {"data": "jsonl", "fitted_on": "dev", "measured_on": "test"})


def data_folders(run: Run) -> list[str]:
    """Return the folders of all files in the run's settings."""
    data = run.config.data
    named = [run.config.start, *(getattr(data, name, None) for name in ("path", "also", "without", "seen_in"))]
    paths = [one for each in named if each for one in ([each] if isinstance(each, str) else each)]
    return [os.path.dirname(path) for path in paths]


def check_free_of_paths(folder: Path, places: Sequence[str]) -> None:
    """Check that no file contains the path of a folder on the training machine.

    Args:
        folder: folder to ship.
        places: folders on that machine; those in the working directory are not checked.

    Raises:
        UserError: a file contains such a path.
    """
    named = (*places, str(Path.home()), str(Path.cwd()))
    secret = {place.encode() for place in named if len(place) > 1 and (place.startswith("..") or os.path.isabs(place))}
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        content = path.read_bytes()
        for place in sorted(secret):
            if place in content:
                raise UserError(f"{path.relative_to(folder)} holds the path {place.decode()} of this machine")


def card(run: Run, facts: Facts, scores: RunScores) -> str:
    """Return the model card as Markdown."""
    from anaphora.runs.directory import training_record
    from anaphora.settings.model.attention import heads_of

    config, record = run.config, training_record(run.files.directory)
    model = config.model
    calibrated = map(calibration_sentence, scores.calibration)
    weights = sum(weight.numel() for weight in run.model.parameters())
    parts = [
        f"---\nlibrary_name: anaphora\nlanguage: [en, zh]\nlicense: {facts.licence}\n---",
        f"# {facts.name}",
        "A small Transformer encoder that names the antecedents of third-person pronouns in everyday English and "
        "Chinese sentences. It comes with Anaphora: `anaphora look`, or `anaphora.load()` in Python.",
        f"- {model.layers} layers of {heads_of(model.attention)} heads, width {model.width}; "
        f"{run.tokenizer.size:,} tokens; {weights:,} weights, stored in 16 bits and computed with in 32",
        "## Trained on",
        "\n".join(f"- {text.name}: {text.licence}" for text in facts.texts),
        "## Training",
        "Of the last of the commands below:\n\n"
        + "\n".join(f"- {name}: {value}" for name, value in training_facts(config.seed, record).items()),
        "All of them, one after the other:\n\n```bash\n" + "\n".join(facts.commands) + "\n```",
        "## Scores",
        f"Right antecedents on the {TEST_SET} test set of `experiments/shipped/sentences`, on which nothing was "
        "chosen, in % with the 95 % interval over minimal pairs. The head of each language was chosen on the "
        "development sets. `make shipped-scores` measures them again.",
        score_table(scores),
        "\n".join(f"- {sentence}" for sentence in (*map(edge_sentence, scores.edges), *calibrated)),
        "## What it cannot do",
        "\n".join(f"- {limit}" for limit in facts.limits),
        f"## Licence\n\n{facts.licence}",
    ]
    return "\n\n".join(parts) + "\n"


def training_facts(seed: int, record: dict[str, Any]) -> dict[str, str]:
    """Return facts about the training, keyed by their labels on the model card."""
    facts = {"Seed": str(seed)}
    if "steps" in record:
        facts["Steps"] = f"{record['steps']:,}"
    if "train_seconds" in record:
        facts["Hours"] = f"{record['train_seconds'] / 3600:.1f}"
    if machine := record.get("machine"):
        facts["Machine"] = f"{machine['processor']}, {machine['cores']} cores"
    if computed := record.get("computed_with"):
        facts["Computed with"] = (
            f"torch {computed['torch']} on {computed['device']}, precision {computed['precision']}, "
            f"{computed['threads']} threads"
        )
    return facts


def score_table(scores: RunScores) -> str:
    """Return the scores as a Markdown table."""
    lines = ["| language | type | sentences | answer | | head | |", "|---|---|---|---|---|---|---|"]
    for row in scores.sentences:
        answer, head = shown_interval(row.answer_interval), shown_interval(row.head_interval)
        cells = (row.language, row.type, row.sentences, row.answer, answer, row.head, head)
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


if __name__ == "__main__":
    run_program(Packaging, work)

"""Generator of the page on settings from the settings classes; make docs adds the page to the site.

The explanation of a setting is the comment on its field in the source.
"""

from __future__ import annotations

import dataclasses
import inspect
import os
import sys
import typing
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from anaphora.analysis.evidence.plan import Protocol
from anaphora.base.device import Device, RunsDevice
from anaphora.base.translation import VARIABLE
from anaphora.commands.antecedents import AntecedentSelection
from anaphora.commands.attention import AttentionQuery
from anaphora.commands.controls import TrainedControls
from anaphora.commands.coreference import ClusterFiles
from anaphora.commands.cross_validate import CrossValidation
from anaphora.commands.evaluate import Evaluation
from anaphora.commands.explain import Explanation
from anaphora.commands.export import Export
from anaphora.commands.extract import Extraction
from anaphora.commands.gap import NameDecisions
from anaphora.commands.look import LivePage
from anaphora.commands.report import Report
from anaphora.commands.score import Scoring
from anaphora.settings.help import comment_on, default_text, listed_fields
from anaphora.settings.run import Config
from anaphora.settings.variants import SLOTS, VARIANTS
from anaphora.studies.plan import Slurm, StudyPlan, VerdictRule

ROOT = Path(__file__).parent.parent


def page() -> str:
    """Return the whole page as Markdown."""
    os.environ.pop(VARIABLE, None)  # the language of pages is by default the writer's own
    parts = [
        "# Settings",
        "",
        "Settings are given as `name=value` after a command. A variant is chosen with a slash, as in",
        "`model/position=learned`, and set with dots, `model.position.max_length=128`. `--help` lists the settings of",
        "a command; of `train`, `demo` and `study` it lists the groups and the settings used most, `--help all` lists",
        "all, and `--cfg job` prints the settings without a start. An unknown name, an invalid value or a setting that",
        "would change nothing ends the command with one line that names it.",
        "In a list of runs `*` stands for any characters and `?` for any one, as in a shell: `'runs=[outputs/dpr_*]'`.",
        "A pattern that matches no directory is refused, and so is a run that is named twice.",
        "",
        "## Training: `anaphora train` and `anaphora demo`",
        "",
        *_table(Config, ""),
    ]
    sections = (
        "data",
        "vocabulary",
        "batching",
        "model",
        "model/position",
        "model/attention",
        "model/feed_forward",
        "model/norm",
        "model/initialisation",
        "task",
        "task/prediction",
        "task/supervision",
        "optimizer",
        "optimizer/value_curriculum",
        "validation",
        "trainer",
        "resume_data",
    )
    defaults = _chosen(ROOT / "configs" / "train.yaml")
    for section in sections:
        parts += ["", f"### `{section}`", ""]
        parts += _group(section, defaults.get(section)) if section in SLOTS else _plain(section)
    parts += [
        "",
        "### Ready-made choices",
        "",
        "A recipe is how a model is trained, on any data that its prediction head can answer. An experiment is a",
        "question: a recipe, data, and what differs.",
        "",
        *_choices(),
    ]
    parts += [
        "",
        "The files lie in [configs](../configs); the demo is [one of them](../configs/experiment/compositions.yaml).",
    ]
    parts += ["", "## The answers of a run: `anaphora evaluate`", "", *_table(Evaluation, "")]
    parts += ["", "Other data are chosen as in training, for instance `data=jsonl data.path=items.jsonl`.", ""]
    parts += [
        "### `trainer`, here and for every command below that runs a model",
        "",
        _summary(Device),
        "",
        *_table(Device, "trainer."),
        "",
    ]
    parts += ["## Scores of all heads: `anaphora score`", "", *_table(Scoring, ""), ""]
    parts += ["## Attention rows as a table: `anaphora extract`", "", *_table(Extraction, ""), ""]
    parts += ["## The report, an atlas of models: `anaphora report`", "", *_table(Report, ""), ""]
    parts += ["### `protocol`", "", _summary(Protocol), "", *_table(Protocol, "protocol."), ""]
    parts += [
        "## The trained controls of a run: `anaphora controls`",
        "",
        *_table(TrainedControls, ""),
        *_table(RunsDevice, "trainer.")[2:],
        "",
    ]
    parts += ["## Heads as antecedent selectors: `anaphora antecedents`", ""]
    parts += [*_table(AntecedentSelection, ""), ""]
    parts += ["## A run for transformers, or as a page: `anaphora export`", "", *_table(Export, ""), ""]
    parts += ["## Name decisions on GAP: `anaphora gap`", "", *_table(NameDecisions, ""), ""]
    parts += ["## Scores of coreference clusters: `anaphora coreference`", "", *_table(ClusterFiles, ""), ""]
    parts += ["## All folds of a corpus: `anaphora cross_validate`", "", *_table(CrossValidation, ""), ""]
    parts += ["## Attention, by the ending of `output`: `anaphora attention`", "", *_table(AttentionQuery, ""), ""]
    parts += ["## The live page: `anaphora look`", "", *_table(LivePage, ""), ""]
    parts += ["## Step by step: `anaphora explain`", "", *_table(Explanation, ""), ""]
    parts += [""]
    parts += [
        "## Studies over many runs: `anaphora study`",
        "",
        *_table(StudyPlan, ""),
        *_table(RunsDevice, "trainer.")[2:],
        "",
    ]
    parts += ["### `slurm`", "", _summary(Slurm), "", *_table(Slurm, "slurm."), ""]
    parts += ["### `rules`", "", _summary(VerdictRule), "", *_table(VerdictRule, "rules."), ""]
    return "\n".join(parts)


def _plain(section: str) -> list[str]:
    settings: Any = Config
    for name in section.split("/"):
        settings = typing.get_type_hints(settings)[name]
    return [_summary(settings), "", *_table(settings, section.replace("/", ".") + ".")]


def _group(group: str, default: str | None) -> list[str]:
    lines = [_summary(SLOTS[group].settings), ""]
    for option, variant in VARIANTS[SLOTS[group].settings].items():
        mark = " (default)" if option == default else ""
        lines += [f"**`{group}={option}`**{mark}: {_summary(variant)}", ""]
        table = _table(variant, group.replace("/", ".") + ".")
        lines += [*table, ""] if table else []
    return lines[:-1]


def _choices() -> list[str]:
    """Return a table of the YAML files of configs/, with the argument that selects each file and its first comment."""
    lines = ["| choice | what it is |", "|---|---|"]
    for path in sorted((ROOT / "configs").rglob("*.yaml")):
        if path.parent == ROOT / "configs":
            continue
        comments = [line for line in path.read_text(encoding="utf-8").splitlines() if line.startswith("# ")]
        words = " ".join(comment[2:] for comment in comments if "@package" not in comment)
        place = path.relative_to(ROOT / "configs").with_suffix("")
        group = place.parent if str(place.parent) in SLOTS else Path(place.parts[0])
        lines.append(f"| `{group}={place.relative_to(group)}` | {words} |")
    return lines


def _chosen(path: Path) -> dict[str, str]:
    """Return the option of each group in a primary config."""
    plain = OmegaConf.to_container(OmegaConf.load(path))
    assert isinstance(plain, dict)
    listed = plain["defaults"]
    return {group: option for entry in listed if isinstance(entry, dict) for group, option in entry.items()}


def _table(settings: type[Any], prefix: str) -> list[str]:
    """Return a table with one row per setting, without groups of settings and without `kind`."""
    rows = []
    hints = typing.get_type_hints(settings)
    variants = {variant for options in VARIANTS.values() for variant in options.values()}
    for field in listed_fields(settings):
        fixed = field.name == "kind" and settings in variants
        if fixed or dataclasses.is_dataclass(hints[field.name]) or "Data" in str(hints[field.name]):
            continue
        rows.append(f"| `{prefix}{field.name}` | {_default(field)} | {_meaning(settings, field.name)} |")
    return ["| setting | default | meaning |", "|---|---|---|", *rows] if rows else []


def _default(field: dataclasses.Field[Any]) -> str:
    default = default_text(field)
    return f"`{default}`" if default else "to be given"


def _meaning(settings: type[Any], name: str) -> str:
    """Return the comment on a setting's field in the source."""
    meaning = comment_on(settings, name)
    if not meaning:
        raise SystemExit(f"{settings.__name__}.{name} has no comment in the source")
    return meaning.replace("|", "\\|")


def _summary(settings: type[Any]) -> str:
    whole = " ".join((inspect.getdoc(settings) or "").split("\n\n")[0].split())
    # A name in angle brackets would be taken for HTML.
    return whole.replace("; the variants are the subclasses.", ".").replace("<", "&lt;")


if __name__ == "__main__":
    sys.stdout.write(page())

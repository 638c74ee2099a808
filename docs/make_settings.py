"""Write docs/settings.md from the settings themselves: python docs/make_settings.py.

Names, types and defaults are those of the dataclasses; a setting's meaning is the comment behind it in the source, or
`MEANINGS` where a name there needs no comment for a reader of the code.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import io
import sys
import tokenize
import typing
from pathlib import Path
from typing import Any

from omegaconf import MISSING, OmegaConf

from anaphora.analysis.settings import (
    Analysis,
    AntecedentSelection,
    Comparison,
    CrossValidation,
    Evidence,
    Export,
    LabelTable,
    NameDecisions,
    Protocol,
    Report,
    Transfer,
)
from anaphora.benchmark.settings import Benchmark
from anaphora.config import GROUPS, VARIANTS, Config
from anaphora.explain.settings import Explanation
from anaphora.place import Place, PlaceOfRuns
from anaphora.replication.settings import Replication
from anaphora.studies.settings import Plan, Rule

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "settings.md"

MEANINGS = {
    "Benchmark.lengths": "`lognormal`, `corpus` (as the built-in one's) or `long` (2,048 tokens each)",
    "Config.output": "the folder of the run directories",
    "Config.seed": "of the weights' start and of the order of the training items",
    "Controlled.languages": "`en`, `zh` or both",
    "Divided.path": "the file or folder; `~` is expanded",
    "Sinusoidal.base": "the wave lengths grow up to 2 pi times this",
    "Learned.max_length": "places that have a vector; longer texts are refused",
    "Rotary.base": "the wave lengths grow up to 2 pi times this",
    "T5Relative.buckets": "of distances, half of them for each direction",
    "T5Relative.max_distance": "all distances from here on share the last bucket",
    "MultiHead.heads": "of each layer",
    "SingleHead.dropout": "of single weights, in training only",
    "Uniform.heads": "of each layer",
    "ParameterFree.heads": "of each layer",
    "Norm.epsilon": "added under the root, against division by zero",
    "Normal.deviation": "standard deviation of the weights",
    "Model.width": "features of a token, over all heads",
    "Model.layers": "blocks of attention and feed-forward",
    "Pointer.head": "which head of that layer",
    "Supervision.heads": "heads of those layers",
    "Task.hidden_words_weight": "weight of that loss",
    "Optimizer.steps": "of training; one batch each",
    "Optimizer.learning_rate": "the highest, after the warm-up",
    "Optimizer.beta2": "decay of AdamW's second moments; the first is 0.9",
    "Trainer.device": "`auto`, `cpu`, `cuda` or `mps`; `auto` takes the first of cuda, mps, cpu that is there",
    "Place.device": "`cpu` or `cuda`",
    "Trainer.compile": "compile the encoder with torch before training",
    "Trainer.progress": "show a progress bar",
    "NameDecisions.data": "as in training; `gap` by default",
    "NameDecisions.split": "which split the fine-tuned runs answer: `train`, `dev` or `test`",
    "Analysis.split": "`train`, `dev` or `test`",
    "Analysis.head": "goes with `layer`",
    "Report.split": "`train`, `dev` or `test`",
    "Report.formats": "of figures: `png`, `svg`, `pdf`",
    "Report.protocol": "what was fixed beforehand; below",
    "Analysis.formats": "of figures: `png`, `svg`, `pdf`",
    "AntecedentSelection.formats": "of figures: `png`, `svg`, `pdf`",
    "CrossValidation.output": "a CSV file",
    "LabelTable.split": "which split of the runs' data: `train`, `dev` or `test`",
    "Transfer.data": "what is asked, as in training; `knowref` by default",
    "Transfer.split": "which split of it: `train`, `dev` or `test`",
    "Replication.layers": "blocks; the paper's 6",
    "Replication.heads": "of each layer; the paper's 8",
    "Replication.width": "features of a token; the paper's 128",
    "Plan.seeds": "one run of every cell for each",
    "Plan.measures": "`scores`, `forms`, `distance`, `roles`, `shuffled`; untrained `scaling`, `symmetry`, `time`",
    "Rule.at_least": "the smallest median that holds",
    "Rule.at_most": "the largest median that holds",
    "Benchmark.seed": "of the invented sentences and the weights",
}


def page() -> str:
    """The whole of docs/settings.md."""
    parts = [
        "# Settings",
        "",
        "<!-- Written by docs/make_settings.py from the source; do not edit by hand. -->",
        "",
        "Settings are given as `name=value` behind a script. A variant is chosen with a slash, as in",
        "`model/position=learned`, and set with dots, `model.position.max_length=128`. `--cfg job` prints all settings",
        "of a run without starting it, `--help` lists the groups. Unknown names and wrong values are refused.",
        "In a list of runs `*` stands for any characters and `?` for any one, as in a shell: `'runs=[outputs/dpr_*]'`.",
        "What matches no directory is refused, and so is a run that is named twice.",
        "",
        "## Training: `scripts/train.py` and `scripts/demo.py`",
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
        "task/readout",
        "task/supervision",
        "optimizer",
        "validation",
        "trainer",
    )
    defaults = _chosen(ROOT / "configs" / "train.yaml")
    for section in sections:
        parts += ["", f"### `{section}`", ""]
        parts += _group(section, defaults.get(section)) if section in GROUPS else _plain(section)
    parts += ["", "### Ready-made choices", "", *_choices()]
    parts += ["", "The files lie in [configs](../configs); the demo is [one of them](../configs/experiment/demo.yaml)."]
    parts += ["", "## Looking at a run: `evaluate`, `extract_attention`, `score_attention`, `plot_attention`", ""]
    parts += _table(Analysis, "")
    parts += ["", "Other data are chosen as in training, for instance `data=jsonl data.path=items.jsonl`.", ""]
    parts += [
        "### `trainer`, here and where a model is run below",
        "",
        _summary(Place),
        "",
        *_table(Place, "trainer."),
        "",
    ]
    parts += ["## The report: `scripts/report.py`", "", *_table(Report, ""), ""]
    parts += ["### `protocol`", "", _summary(Protocol), "", *_table(Protocol, "protocol."), ""]
    parts += [
        "## The trained controls of a run: `scripts/evidence.py`",
        "",
        *_table(Evidence, ""),
        *_table(PlaceOfRuns, "trainer.")[2:],
        "",
    ]
    parts += ["## Heads as antecedent selectors: `scripts/antecedents.py`", ""]
    parts += [*_table(AntecedentSelection, ""), ""]
    parts += ["## A run for transformers: `scripts/export.py`", "", *_table(Export, ""), ""]
    parts += ["## Name decisions on GAP: `scripts/gap.py`", "", *_table(NameDecisions, ""), ""]
    parts += ["## All folds of a corpus: `scripts/cross_validate.py`", "", *_table(CrossValidation, ""), ""]
    parts += ["## Another corpus than the runs' own: `scripts/transfer.py`", "", *_table(Transfer, ""), ""]
    parts += ["## Labels of texts: `scripts/labels.py`", "", *_table(LabelTable, ""), ""]
    parts += ["## Step by step: `scripts/explain.py`", "", *_table(Explanation, ""), ""]
    parts += ["## Several runs: `scripts/compare.py`", "", *_table(Comparison, "")]
    parts += ["", "## Speed: `scripts/benchmark.py`", "", *_table(Benchmark, "")]
    parts += ["", "`scale=smoke` is the smallest comparison that goes all the way."]
    parts += ["", "## A published table again: `scripts/replicate.py`", "", *_table(Replication, ""), ""]
    parts += [
        "## Studies over many runs: `scripts/study.py`",
        "",
        *_table(Plan, ""),
        *_table(PlaceOfRuns, "trainer.")[2:],
        "",
    ]
    parts += ["### `rules`", "", _summary(Rule), "", *_table(Rule, "rules."), ""]
    return "\n".join(parts)


def _plain(section: str) -> list[str]:
    found: Any = Config
    for name in section.split("/"):
        found = typing.get_type_hints(found)[name]
    return [_summary(found), "", *_table(found, section.replace("/", ".") + ".")]


def _group(group: str, default: str | None) -> list[str]:
    lines = [_summary(GROUPS[group]), ""]
    for option, variant in VARIANTS[GROUPS[group]].items():
        mark = " (default)" if option == default else ""
        lines += [f"**`{group}={option}`**{mark}: {_summary(variant)}", ""]
        table = _table(variant, group.replace("/", ".") + ".")
        lines += [*table, ""] if table else []
    return lines[:-1]


def _choices() -> list[str]:
    """The YAML files of configs/, one line each: how they are chosen and what their first comment says."""
    lines = ["| choice | what it is |", "|---|---|"]
    for path in sorted((ROOT / "configs").rglob("*.yaml")):
        if path.parent == ROOT / "configs":
            continue
        comments = [line for line in path.read_text(encoding="utf-8").splitlines() if line.startswith("# ")]
        words = " ".join(comment[2:] for comment in comments if "@package" not in comment)
        group, *inside = path.relative_to(ROOT / "configs").with_suffix("").parts
        lines.append(f"| `{group}={'/'.join(inside)}` | {words} |")
    return lines


def _chosen(path: Path) -> dict[str, str]:
    """Which option of each group a primary config takes."""
    plain = OmegaConf.to_container(OmegaConf.load(path))
    assert isinstance(plain, dict)
    listed = plain["defaults"]
    return {group: option for entry in listed if isinstance(entry, dict) for group, option in entry.items()}


def _table(settings: type[Any], prefix: str) -> list[str]:
    """One row a setting; groups of settings and `kind`, which the choice of a variant decides, are left out."""
    rows = []
    hints = typing.get_type_hints(settings)
    for one in dataclasses.fields(settings):
        fixed = one.name == "kind" and settings in {each for all_ in VARIANTS.values() for each in all_.values()}
        if fixed or dataclasses.is_dataclass(hints[one.name]) or "Data" in str(hints[one.name]):
            continue
        rows.append(f"| `{prefix}{one.name}` | {_default(one)} | {_meaning(settings, one.name)} |")
    return ["| setting | default | meaning |", "|---|---|---|", *rows] if rows else []


def _default(one: dataclasses.Field[Any]) -> str:
    value = one.default
    if one.default_factory is not dataclasses.MISSING:
        value = one.default_factory()
    if value is dataclasses.MISSING or value == MISSING:
        return "to be given"
    if isinstance(value, list):
        return f"`[{','.join(str(each) for each in value)}]`"
    return f"`{'null' if value is None else str(value).lower() if isinstance(value, bool) else value}`"


def _meaning(settings: type[Any], name: str) -> str:
    """The comment behind a field, looked for along the classes that declare it."""
    for declaring in settings.__mro__:
        if name in inspect.get_annotations(declaring):
            key = f"{declaring.__name__}.{name}"
            found = _comments(declaring).get(name) or MEANINGS.get(key)
            if found:
                return found.replace("|", "\\|")
    raise SystemExit(f"{settings.__name__}.{name} has no comment in the source and none in MEANINGS")


def _comments(settings: type[Any]) -> dict[str, str]:
    source = inspect.getsource(settings)
    behind = {
        token.start[0]: token.string.lstrip("# ")
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type == tokenize.COMMENT
    }
    body = ast.parse(source).body[0]
    assert isinstance(body, ast.ClassDef)
    return {
        node.target.id: behind[node.lineno]
        for node in body.body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.lineno in behind
    }


def _summary(settings: type[Any]) -> str:
    whole = " ".join((inspect.getdoc(settings) or "").split("\n\n")[0].split())
    # A name in angle brackets would be taken for HTML.
    return whole.replace("; the variants are the subclasses.", ".").replace("<", "&lt;")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    sys.stdout.write(f"{PAGE}\n")

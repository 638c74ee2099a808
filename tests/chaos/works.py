"""Commands to interrupt, each in its smallest form, and the commands that continue them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from conftest import TINY, rows, write_gap

RUN = "outputs/run"
_TABLE = ("data=jsonl", "data.path=items.jsonl")
_SMALL = (*TINY, "optimizer.steps=6", "validation.every=3")
_TRAIN = ("train", *_TABLE, *_SMALL, "trainer.loggers=[tensorboard,csv]")
_SENTENCE = ("text=Anna met Tom before she went to the park.", "pronoun=she", "candidates=[Anna,Tom]")
_KEY = {
    "doc_key": "a",
    "sentences": [["Anna", "met", "Tom", "."], ["She", "left", "."]],
    "clusters": [[[0, 0], [4, 4]], [[2, 2]]],
}
_STUDY = """# @package _global_
name: small
question: Does it?
prediction: It does.
base: [{base}]
factors:
  heads:
    one: [model.attention.heads=1]
seeds: [0]
formats: [png]
"""


@dataclass(frozen=True)
class Work:
    """Command to interrupt.

    Attributes:
        name: name in the table.
        arguments: the command and its settings.
        before: commands whose results this command needs.
        resumed: command that continues an unfinished run, or replaces the file, if it is another command.
        ranks: number of processes that train together.
        own_processes: whether the command starts processes, which repeat the imports.
    """

    name: str
    arguments: tuple[str, ...]
    before: tuple[tuple[str, ...], ...] = ()
    resumed: tuple[str, ...] | None = None
    ranks: int = 1
    own_processes: bool = False

    def again(self, folder: Path) -> tuple[str, ...]:
        """Return the command that a user runs after an interruption."""
        begun = any(folder.glob("outputs/*/config.yaml"))
        return self.resumed if self.resumed is not None and begun else self.arguments


_RUN = (*_TRAIN, "name=run")
_EXPLAIN = ("explain", f"run={RUN}", *_SENTENCE, "layer=0", "head=0", "form=page", "output=explained.html")
_ATTENTION = ("attention", f"run={RUN}", *_SENTENCE, "output=maps.parquet")
_RESUMED = ("train", f"resume={RUN}", "trainer=smoke", "trainer.loggers=[tensorboard,csv]")
_FOLD_RUNS = tuple(
    (*_TRAIN, "data.folds=2", "validation.keep=last", f"data.fold={fold}", f"name=fold_{fold}") for fold in (0, 1)
)
_FOLDS = ("cross_validate", "runs=[outputs/fold_0,outputs/fold_1]", "output=folds.csv")
_GAP = ("data=gap", "data.path=.")
_GAP_RUN = ("train", *_GAP, *_SMALL, "task.prediction.none_of_them=true", "name=run")
_OF_GAP = ("gap", f"runs=[{RUN}]", *_GAP, "output=gap.csv")
_COREFERENCE = ("coreference", f"run={RUN}", "key=key.jsonl", "response=response.jsonl", "output=scores.csv")
_EXPORT = ("export", f"run={RUN}", "format=anaphora", "output=exported")
_PAGE = ("export", f"run={RUN}", "format=page", "output=page.html")
WORKS = (
    Work("train", _RUN, resumed=_RESUMED),
    Work("score", ("score", f"run={RUN}"), before=(_RUN,)),
    Work("extract", ("extract", f"run={RUN}"), before=(_RUN,)),
    Work("controls", ("controls", f"run={RUN}", "controls=[shuffled_labels]"), before=(_RUN,)),
    Work("report", ("report", f"run={RUN}", "untrained=1"), before=(_RUN,)),
    Work("explain", _EXPLAIN, before=(_RUN,), resumed=(*_EXPLAIN, "overwrite=true")),
    Work("attention", _ATTENTION, before=(_RUN,), resumed=(*_ATTENTION, "overwrite=true")),
    Work("corpus", ("corpus", *_TABLE, "output=described")),
    Work("evaluate", ("evaluate", f"run={RUN}", "output=answers"), before=(_RUN,)),
    Work("cross_validate", _FOLDS, before=_FOLD_RUNS, resumed=(*_FOLDS, "overwrite=true")),
    Work("gap", _OF_GAP, before=(_GAP_RUN,), resumed=(*_OF_GAP, "overwrite=true")),
    Work("coreference", _COREFERENCE, before=(_RUN,), resumed=(*_COREFERENCE, "overwrite=true")),
    Work("export", _EXPORT, before=(_RUN,)),
    Work("export a page", _PAGE, before=(_RUN,), resumed=(*_PAGE, "overwrite=true")),
    Work("study", ("study", "--config-dir=.", "study=small", "side_by_side=1")),
    Work("a sweep", ("train", "-m", *_TRAIN[1:], "seed=1,2")),
    Work("train, two processes", _RUN, resumed=_RESUMED, ranks=2),
    Work("study, side by side", ("study", "--config-dir=.", "study=small", "side_by_side=2"), own_processes=True),
)


def lay_out(folder: Path) -> None:
    """Write the input files of the commands."""
    table = "\n".join(json.dumps(row, ensure_ascii=False) for row in rows(60)) + "\n"
    (folder / "items.jsonl").write_text(table, encoding="utf-8")
    write_gap(folder)
    (folder / "key.jsonl").write_text(json.dumps(_KEY) + "\n", encoding="utf-8")
    (folder / "study").mkdir()
    base = ", ".join(json.dumps(setting) for setting in (*_TABLE, *_SMALL))
    (folder / "study" / "small.yaml").write_text(_STUDY.format(base=base), encoding="utf-8")

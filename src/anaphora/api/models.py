"""The attention of any model in any text, in one call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anaphora.api.maps import SentenceAttention, labelled_attention
from anaphora.api.runs import OpenRun
from anaphora.base.checks import one_text
from anaphora.base.device import Device, torch_device
from anaphora.base.errors import UserError
from anaphora.base.hub import HUB_PREFIX
from anaphora.data.own_sentence import optional_example
from anaphora.data.tokens.tokenizer import BETWEEN_TEXTS
from anaphora.runs.directory import load as load_run
from anaphora.runs.shipped import run_folder
from anaphora.runs.warm_start import holds_run

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    from anaphora.hf.reader import TransformersModel


def attention(
    model: str | Path | OpenRun | PreTrainedModel,
    text: str,
    pronoun: str | None = None,
    candidates: Sequence[str] = (),
    *,
    antecedent: str | None = None,
    by: str = "word",
    words: str | Sequence[str] | None = None,
    second: str | None = None,
    tokenizer: PreTrainedTokenizerBase | None = None,
    device: Device | None = None,
) -> SentenceAttention:
    """Return the attention of every layer and head when a model reads one text.

    Args:
        model: a run directory, "shipped" for the run inside the package, a folder with a model of `transformers`, the
            name of a model on the hub as "hf://owner/name", an open run, or a loaded model of `transformers`. A model
            that is opened by its name stays in memory for later calls, until its files change.
        text: the text, in English or Chinese.
        pronoun: the pronoun as it stands in the text, or its characters as "start:end". If the word occurs more than
            once, "it:2" is the second "it". By default it is the last third-person pronoun of the text, if there is
            one.
        candidates: what the pronoun may refer to, each as it stands in the text, or as "start:end". Pictures and pages
            mark the candidates.
        antecedent: the right one of the candidates, if it is known.
        by: "word" merges the subwords of a word: the weights on them are summed, and their rows are averaged. "token"
            keeps all tokens apart.
        words: the words of the text, if tokens are to be merged to these words instead of those that blanks, marks
            and, in Chinese, the tokenizer divide: a list, or the text with blanks between its words, such as
            "小红 推 了 小明". They must spell the text.
        second: the second text of a pair, for a model of `transformers` whose tokenizer separates two texts. Both are
            one string in `text`, with a blank between them; `between` chooses from which to which.
        tokenizer: the tokenizer that belongs to `model`, if that is a loaded model of `transformers`.
        device: where a model that is opened by its name computes; by default on the processor.

    Raises:
        UserError: there is no such model, a word is not in the text, there are candidates and no pronoun, the words do
            not spell the text, or the model cannot read the text, for instance because it is too long, or one of two.
    """
    one_text("text", text)
    if second is not None:
        one_text("second", second)
    joined = text if second is None else f"{text}{BETWEEN_TEXTS}{second}"
    example = optional_example(joined, pronoun, candidates, antecedent)
    opened = open_any(model, tokenizer, device)
    if isinstance(opened, OpenRun):
        if second is not None:
            raise UserError(
                f"second ({second[:40]!r}): {opened.name} is a run, which reads one text; write both in text"
            )
        return opened.attention(text, pronoun, candidates, antecedent=antecedent, by=by, words=words)
    tokens, maps = opened.maps(text, second)
    labelled = labelled_attention(
        joined, tokens, maps, by=by, own_words=words, model=opened.name, is_decoder=opened.is_decoder, example=example
    )
    return labelled if second is None else replace(labelled, second_start=len(joined) - len(second))


def open_any(
    model: Any, tokenizer: PreTrainedTokenizerBase | None = None, device: Device | None = None
) -> OpenRun | TransformersModel:
    """Open a run or a model of `transformers` by its name on the device, or return an open one unchanged.

    Raises:
        UserError: there is no such model, or it is of no kind that can be read.
    """
    if isinstance(model, OpenRun):
        return model
    if isinstance(model, str | Path):
        return _open_named(_Named.now(str(model)), device.device if device else "cpu")
    from anaphora.hf.reader import open_model

    return open_model(model, tokenizer)


def untrained_model(model: OpenRun | TransformersModel, seed: int) -> OpenRun | TransformersModel:
    """Return a randomly initialised model of the same shape."""
    if isinstance(model, OpenRun):
        return OpenRun(replace(model.run, model=model.run.untrained_model(seed)))
    return model.untrained(seed)


_KINDS_READ = (".json", ".safetensors", ".txt", ".yaml")
"""The kinds of files that a model, its tokenizer and its chosen head are read from."""


@dataclass(frozen=True)
class _Named:
    """A cache key: a model name with the times and sizes of its files, which may change while the program runs.

    Attributes:
        name: as the user wrote it.
        files: what is read of the folder that it leads to: paths, with the time of the last change in nanoseconds and
            the size in bytes; none of a model on the hub.
    """

    name: str
    files: tuple[tuple[str, int, int], ...]

    @classmethod
    def now(cls, name: str) -> _Named:
        if name.startswith(HUB_PREFIX):
            return cls(name, ())
        folder = run_folder(name).resolve()
        files = [(path, path.stat()) for path in sorted(folder.glob("*")) if path.suffix in _KINDS_READ]
        return cls(name, tuple((str(path), status.st_mtime_ns, status.st_size) for path, status in files))


@lru_cache(maxsize=4)
def _open_named(named: _Named, device: str) -> OpenRun | TransformersModel:
    if holds_run(named.name):
        return OpenRun(load_run(named.name, Device(device=device)))
    from anaphora.hf.reader import open_model

    return open_model(named.name).on(torch_device(device))

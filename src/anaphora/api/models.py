"""Attention maps of any model for any text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anaphora.api.maps import SentenceAttention, labelled_attention
from anaphora.api.runs import OpenRun
from anaphora.base.checks import one_text
from anaphora.base.device import Device, torch_device
from anaphora.base.errors import UserError
from anaphora.base.hub import HUB_PREFIX
from anaphora.base.language import LANGUAGES
from anaphora.data.own_sentence import optional_example
from anaphora.data.tokens.tokenizer import BETWEEN_TEXTS
from anaphora.runs.directory import load as load_run
from anaphora.runs.shipped import run_folder
from anaphora.runs.warm_start import holds_run

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    from anaphora.hf.reader import TransformersModel

    AnyModel = OpenRun | TransformersModel


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
    """Return the attention of every layer and head of a model for one text.

    Args:
        model: a run directory, "shipped" for the run in the package, a folder with a `transformers` model, the name of
            a model on the Hugging Face Hub as "hf://owner/name", an `OpenRun`, or a loaded `transformers` model. A
            model given by folder or name is cached until its files change; the cache holds four models.
        text: the text, in English or Chinese.
        pronoun: the pronoun as in the text, or its characters as "start:end". "it:2" is the second "it". By default the
            last third-person pronoun of the text, if there is one.
        candidates: possible antecedents, each as in the text or as "start:end". Figures and pages mark them.
        antecedent: the correct one of `candidates`, if it is known.
        by: "word" merges the subwords of a word (weights on them are summed, their rows averaged); "token" does not.
        words: with by="word", words into which tokens are merged, as a list, or as the text with spaces between its
            words, such as "小红 推 了 小明". These words, joined, must give the text. By default, words end at spaces
            and punctuation, and in Chinese each token is a word.
        second: second text of a pair, for a `transformers` model whose tokenizer takes pairs. The result has both texts
            in one string, with a space between them; `between` selects the weights from one text to the other.
        tokenizer: the tokenizer of a loaded `transformers` model; also replaces that of a folder or a name.
        device: device of a model that is opened by name; by default the CPU.

    Raises:
        UserError: the text is too long, or the model has no attention maps or does not take a pair of texts; also the
            errors of `open_any`, `example_from_query`, `labelled_attention` and, for a run, `OpenRun.attention`.
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


def open_any(model: Any, tokenizer: PreTrainedTokenizerBase | None = None, device: Device | None = None) -> AnyModel:
    """Open a run or a `transformers` model by name, or wrap a loaded `transformers` model.

    An open model is returned unchanged. The last four models opened by name without `tokenizer` are cached.

    Raises:
        UserError: the model does not exist, cannot be read or is not of a supported type, `tokenizer` is given together
            with a run, or the device is missing.
    """
    is_named = isinstance(model, str | Path)
    if tokenizer is not None and (isinstance(model, OpenRun) or (is_named and holds_run(str(model)))):
        raise UserError(f"tokenizer: {model if is_named else model.name} is a run, which has its own; leave it out")
    if isinstance(model, OpenRun):
        return model
    where = device.device if device else "cpu"
    if is_named and tokenizer is None:
        return _open_named(str(model), _files_of(str(model)), where)
    from anaphora.hf.reader import TransformersModel, open_model

    if isinstance(model, TransformersModel) and tokenizer is None:
        return model
    opened = open_model(model, tokenizer)
    return opened.on(torch_device(where)) if is_named else opened


_SUFFIXES = (".json", ".safetensors", ".txt", ".yaml")
"""Suffixes of the files that hold a model, its tokenizer and its chosen head."""


def _files_of(name: str) -> tuple[tuple[str, int, int], ...]:
    """Return path, modification time in ns and size in bytes of each file of a model; () for a model on the Hub.

    The files are those with a suffix in `_SUFFIXES` in the model's folder, and in its subfolders "en" and "zh", which
    hold the head chosen for a language.
    """
    if name.startswith(HUB_PREFIX):
        return ()
    folder = run_folder(name).resolve()
    paths = [path for place in ("", *LANGUAGES) for path in sorted((folder / place).glob("*"))]
    files = [(path, path.stat()) for path in paths if path.suffix in _SUFFIXES]
    return tuple((str(path), status.st_mtime_ns, status.st_size) for path, status in files)


@lru_cache(maxsize=4)
def _open_named(name: str, _files: tuple[tuple[str, int, int], ...], device: str) -> AnyModel:
    """Open a model; `_files` is part of the cache key, so that a model whose files have changed is opened again."""
    if holds_run(name):
        return OpenRun(load_run(name, Device(device=device)))
    from anaphora.hf.reader import open_model

    return open_model(name).on(torch_device(device))

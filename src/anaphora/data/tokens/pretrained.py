"""Tokenizers of published encoders, converted so that the special tokens have our names and the first ids."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer as Backend
from tokenizers import models, normalizers, pre_tokenizers, processors

from anaphora.base.errors import UserError
from anaphora.base.files import read_json
from anaphora.base.special_tokens import CLS, SPECIAL_TOKENS, UNKNOWN
from anaphora.data.tokens.tokenizer import Tokenizer

TOKENIZER, VOCABULARY = "tokenizer.json", "vocab.txt"
SEPARATOR = "[SEP]"
_ROBERTA = {"[PAD]": "<pad>", "[UNK]": "<unk>", "[CLS]": "<s>", "[MASK]": "<mask>", SEPARATOR: "</s>"}


@dataclass(frozen=True)
class ImportedTokenizer:
    """Converted tokenizer of a published model.

    Attributes:
        tokenizer: tokenizer whose vocabulary begins with our special tokens; the other tokens keep their order.
        rows: id of each token in the published vocabulary; None for a special token that is missing there.
    """

    tokenizer: Tokenizer
    rows: tuple[int | None, ...]


def read_tokenizer(folder: Path) -> ImportedTokenizer:
    """Read the tokenizer of a folder with pretrained weights: tokenizer.json, or the vocab.txt of a BERT.

    Raises:
        UserError: both files are missing, or the file is damaged, lacks a required special token, has one twice under
            different names, or has a model that cannot be renumbered.
    """
    path = folder / TOKENIZER
    if path.exists():
        try:
            written = json.loads(path.read_text(encoding="utf-8"))
            Backend.from_str(json.dumps(written))
        except Exception as error:  # the backend raises bare Exception for a broken file
            raise UserError(f"{path}: not a readable tokenizer ({error})") from None
    elif (folder / VOCABULARY).exists():
        path = folder / VOCABULARY
        written = json.loads(_bert_tokenizer(path, _lower_case(folder)).to_str())
    else:
        raise UserError(f"{folder} has neither {TOKENIZER} nor {VOCABULARY}")
    return _renumbered(written, path)


def _bert_tokenizer(path: Path, lower_case: bool) -> Backend:
    """Build a BERT tokenizer from a vocab.txt (Devlin et al. 2019)."""
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: byte {error.start} is not UTF-8") from None
    vocabulary = {line.rstrip("\r"): number for number, line in enumerate(lines) if line.rstrip("\r")}
    if SPECIAL_TOKENS[UNKNOWN] not in vocabulary:
        raise UserError(f"{path}: {SPECIAL_TOKENS[UNKNOWN]} is missing; it needs one subword on each line")
    backend = Backend(models.WordPiece(vocabulary, unk_token=SPECIAL_TOKENS[UNKNOWN], max_input_chars_per_word=100))
    backend.normalizer = normalizers.BertNormalizer(lowercase=lower_case)
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return backend


def _lower_case(folder: Path) -> bool:
    """Return the setting `do_lower_case` of tokenizer_config.json; True if the file or the setting is missing.

    Raises:
        UserError: the file is damaged.
    """
    try:
        return bool(read_json(folder / "tokenizer_config.json", dict).get("do_lower_case", True))
    except FileNotFoundError:
        return True


def _renumbered(written: dict[str, Any], path: Path) -> ImportedTokenizer:
    model = written["model"]
    listed = model.get("vocab")
    as_list = isinstance(listed, list)  # a unigram model lists its tokens with their scores
    known = {token: number for number, (token, _) in enumerate(listed)} if as_list else dict(listed or {})
    scores = dict(listed) if as_list else {}
    for added in written.get("added_tokens", []):
        known.setdefault(added["content"], added["id"])
    theirs = _special_token_names(known, path)
    ours = {name: own for own, name in theirs.items()}
    opening = [theirs.get(own) for own in SPECIAL_TOKENS]
    rest = sorted((token for token in known if token not in opening), key=known.__getitem__)
    order = [*opening, *rest]
    tokens = [SPECIAL_TOKENS[place] if token is None else ours.get(token, token) for place, token in enumerate(order)]
    if len(set(tokens)) < len(tokens):
        twice = next(token for token in tokens if tokens.count(token) > 1)
        raise UserError(f"{path}: the vocabulary has both {twice} and a special token with the same meaning")
    if as_list:
        least = min(scores.values(), default=0.0)
        model["vocab"] = [[token, scores.get(source or "", least)] for token, source in zip(tokens, order, strict=True)]
        model["unk_id"] = UNKNOWN
    else:
        model["vocab"] = {token: number for number, token in enumerate(tokens)}
        if model.get("unk_token") is not None:
            model["unk_token"] = ours.get(model["unk_token"], model["unk_token"])
    special = set(theirs.values())
    # Special tokens cannot be written in a text, so the tokenizer does not search for them.
    kept = [added for added in written.get("added_tokens", []) if added["content"] not in special]
    numbers = {token: number for number, token in enumerate(tokens)}
    written["added_tokens"] = [{**added, "id": numbers[added["content"]]} for added in kept]
    written["truncation"] = written["padding"] = written["post_processor"] = None
    try:
        backend = Backend.from_str(json.dumps(written))
    except Exception as error:  # the backend raises bare Exception
        raise UserError(f"{path}: cannot be renumbered ({error})") from None
    if SEPARATOR in numbers:
        backend.post_processor = processors.TemplateProcessing(
            single=f"{SPECIAL_TOKENS[CLS]} $A {SEPARATOR}",
            special_tokens=[(SPECIAL_TOKENS[CLS], CLS), (SEPARATOR, numbers[SEPARATOR])],
        )
    return ImportedTokenizer(Tokenizer(backend), tuple(None if token is None else known[token] for token in order))


def _special_token_names(known: Mapping[str, int], path: Path) -> dict[str, str]:
    """Map our special tokens and [SEP] to their names in a vocabulary, without those that the vocabulary lacks."""
    style = {name: name for name in (*SPECIAL_TOKENS, SEPARATOR)} if SPECIAL_TOKENS[CLS] in known else _ROBERTA
    if style[SPECIAL_TOKENS[CLS]] not in known:
        raise UserError(f"{path}: the vocabulary has neither {SPECIAL_TOKENS[CLS]} nor {_ROBERTA[SPECIAL_TOKENS[CLS]]}")
    return {own: name for own, name in style.items() if name in known}

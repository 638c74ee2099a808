"""Detection of contamination: training texts that share eight consecutive words with evaluation data.

Words are lower-cased, punctuation is ignored, and each Chinese character counts as a word. How an evaluation file is
divided into texts depends on its format: strings and lists of words in JSON and Parquet, elements below the root in
XML, sentences in CoNLL-2012 and CoNLL-U, and lines in all other files.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from itertools import chain, count
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anaphora.base.errors import UserError
from anaphora.base.files import parse_json
from anaphora.base.language import CHINESE_RANGES
from anaphora.data.corpora import conll2012, conllu
from anaphora.data.corpora.division import files_below, read_lines
from anaphora.data.corpora.reading import parquet_rows, xml_root

NGRAM_LENGTH = 8  # number of consecutive words that a training text must not share with evaluation data

_WORD = re.compile(rf"[{CHINESE_RANGES}]|[^\W_{CHINESE_RANGES}]+")
_CONLL = ".conll"
_SUFFIXES = (".txt", ".tsv", ".csv", ".json", ".jsonl", ".jsonlines", _CONLL, ".conllu", ".tokens", ".xml", ".parquet")
_BASE = np.uint64(0x9E3779B97F4A7C15)
_PARAGRAPHS_PER_CALL = 20_000  # number of paragraphs hashed at a time
_FIRST_BITS = 24

Hashes = NDArray[np.uint64]


def normalised_words(text: str) -> list[str]:
    """Return the lower-cased words of a text without punctuation; each Chinese character is a word."""
    return _WORD.findall(text.lower())


class EvaluationNgrams:
    """All eight-word sequences of the evaluation data, which are files, or folders whose supported files are read.

    The sequences are stored as 64-bit hashes. Two different sequences have the same hash with probability 2 ** -64, so
    that no collision is expected even between ten million training and one million evaluation sequences.

    Raises:
        UserError: a path does not exist, a folder has no supported file, a file cannot be read or is not in the format
            of its suffix, or the data at a path have no text of eight or more words.
    """

    def __init__(self, paths: Sequence[str]) -> None:
        short = [Path(path).name for path in paths]
        self.names = [name if short.count(name) == 1 else str(path) for name, path in zip(short, paths, strict=True)]
        self._numbers: dict[str, int] = {}  # index in `_codes` of each word so far
        self._codes = np.empty(0, dtype=np.uint64)
        hashes = []
        for path in paths:
            texts = chain.from_iterable(map(evaluation_texts, evaluation_files([path])))
            hashes.append(self._hashes(list(texts))[0])
            if not len(hashes[-1]):  # such a path would exclude no text
                raise UserError(f"data.without ({path}): it has no {NGRAM_LENGTH} words in a row that could be shared")
        every = np.concatenate([np.empty(0, np.uint64), *hashes])
        source = np.repeat(np.arange(len(hashes)), [len(each) for each in hashes])
        self._known, first = np.unique(every, return_index=True)
        self._source = source[first]
        # The sorted hashes are searched only for the few hashes whose first bits pass this filter.
        self._passes = np.zeros(1 << _FIRST_BITS, dtype=np.bool_)
        self._passes[_first_bits(self._known)] = True

    def shared_with(self, paragraphs: Sequence[str]) -> list[str | None]:
        """Find evaluation data that share eight consecutive words with each paragraph; return their name, or None."""
        shared: list[str | None] = [None] * len(paragraphs)
        if not len(self._known):
            return shared
        for begin in range(0, len(paragraphs), _PARAGRAPHS_PER_CALL):
            hashes, owners = self._hashes(paragraphs[begin : begin + _PARAGRAPHS_PER_CALL])
            passed = np.flatnonzero(self._passes[_first_bits(hashes)])
            hashes, owners = hashes[passed], owners[passed]
            place = np.minimum(np.searchsorted(self._known, hashes), len(self._known) - 1)
            hit = np.flatnonzero(self._known[place] == hashes)
            for paragraph, source in zip(owners[hit].tolist(), self._source[place[hit]].tolist(), strict=True):
                shared[begin + paragraph] = self.names[source]
        return shared

    def _hashes(self, listed: Sequence[str]) -> tuple[Hashes, NDArray[np.int64]]:
        """Return the hash and the text index of each of the S eight-word sequences in the texts: two arrays (S,)."""
        split = [normalised_words(text) for text in listed]
        lengths = np.fromiter(map(len, split), dtype=np.int64, count=len(split))
        codes = self._codes_of(list(chain.from_iterable(split)))
        runs = max(0, len(codes) - NGRAM_LENGTH + 1)
        hashes = np.zeros(runs, dtype=np.uint64)
        for place in range(NGRAM_LENGTH):
            hashes = hashes * _BASE + codes[place : place + runs]  # modulo 2 ** 64
        owners = np.repeat(np.arange(len(split)), lengths)
        inside = owners[:runs] == owners[NGRAM_LENGTH - 1 :]
        return hashes[inside], owners[:runs][inside]

    def _codes_of(self, words: Sequence[str]) -> Hashes:
        """Return a 64-bit hash of each of W words, (W,), which is the same in every process."""
        new = [word for word in dict.fromkeys(words) if word not in self._numbers]
        self._numbers.update(zip(new, count(len(self._numbers))))
        self._codes = np.concatenate((self._codes, np.fromiter(map(_code_digest, new), np.uint64, len(new))))
        return self._codes[np.fromiter(map(self._numbers.__getitem__, words), np.int64, len(words))]


def _first_bits(hashes: Hashes) -> NDArray[np.int64]:
    return (hashes >> np.uint64(64 - _FIRST_BITS)).astype(np.int64)


def _code_digest(word: str) -> int:
    return int.from_bytes(hashlib.blake2b(word.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


def evaluation_files(paths: Sequence[str]) -> list[Path]:
    """Return the given files, and the files with a supported suffix in the given folders, except hidden files."""
    files: list[Path] = []
    for name in paths:
        path = Path(name).expanduser()
        if not path.exists():
            raise UserError(f"data.without ({name}): there is no such file or folder")
        inside = [one for one in files_below(path).values() if _suffix(one)] if path.is_dir() else [path]
        if not inside:
            raise UserError(f"data.without ({name}): the folder has no file of {', '.join(_SUFFIXES)}")
        files += inside
    return files


def evaluation_texts(path: Path) -> Iterator[str]:
    """Yield the texts of an evaluation file, whose suffix determines the format; by default, each line is a text.

    Raises:
        UserError: the file cannot be read or is not in the format of its suffix.
    """
    match _suffix(path):
        case ".json" | ".jsonl" | ".jsonlines":
            yield from chain.from_iterable(map(_strings, _json(path)))
        case ".parquet":
            yield from chain.from_iterable(_strings(row) for _, row in parquet_rows(path))
        case ".xml":
            yield from (" ".join(element.itertext()) for element in xml_root(path))
        case ".conllu":
            yield from conllu.sentences_of(path)
        case ".conll":
            yield from conll2012.sentences_of(path)
        case _:
            yield from read_lines(path)


def _suffix(path: Path) -> str:
    """Return the last supported suffix of a file name, such as ".txt" for a.txt.gz or a.txt.dev; "" if it has none."""
    endings = Path(path.name.lower().replace("_conll", _CONLL)).suffixes  # CoNLL-2012 has .v4_gold_conll
    return next((one for one in reversed(endings) if one in _SUFFIXES), "")


def _json(path: Path) -> list[Any]:
    """Return the values in a file of JSON lines, or the single value in a JSON file.

    A file is read as JSON lines if its first non-blank line is a complete JSON value.
    """
    lines = read_lines(path)
    values: list[Any] = []
    for number, line in enumerate(lines, start=1):
        if line.strip():
            try:
                values.append(parse_json(line, f"{path}, line {number}"))
            except UserError:
                if values:
                    raise
                return [parse_json("\n".join(lines), str(path), of_file=True)]
    return values or [parse_json("", str(path), of_file=True)]


def _strings(value: Any) -> Iterator[str]:
    """Yield all strings in a JSON value, at any depth, in order, without the keys of objects; join the words of a list.

    A list of strings without spaces, such as the words of a document with clusters, is a single text.
    """
    waiting = [value]
    while waiting:
        match waiting.pop():
            case str(text):
                yield text
            case dict(entries):
                waiting += reversed(entries.values())
            case list(entries) if all(isinstance(one, str) and len(one.split()) <= 1 for one in entries):
                yield " ".join(entries)
            case list(entries):
                waiting += reversed(entries)

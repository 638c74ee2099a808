from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from pyarrow import parquet

from anaphora.analysis.maps.capture import capture_run, text_maps
from anaphora.analysis.tasks import extraction
from anaphora.analysis.tasks.extraction import Extractor, Selection
from anaphora.base.errors import UserError
from anaphora.commands.extract import Extraction, extract
from anaphora.data.batches.texts import queried_chunks
from anaphora.data.store import load as load_corpus
from anaphora.runs.directory import Run, load
from anaphora.runs.items import evaluation_splits
from anaphora.settings.data import Gap, OwnExamples, PlainText

TEXT = "Anna met Tom before she went to the park. Tom met Anna before he went to the shop."


@pytest.fixture
def parts_of_two(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extraction, "PART_ITEMS", 2)


@pytest.fixture(scope="module")
def run(finished: Path) -> Run:
    return load(finished)


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> PlainText:
    path = tmp_path_factory.mktemp("plain") / "text.jsonl"
    lines = (json.dumps({"text": text}) for text in (TEXT, "The park is old.", "Mary saw her park."))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return PlainText(path=str(path), dev_share=0.0, test_share=0.0)


def rows_of(path: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = parquet.read_table(path).to_pylist()
    return rows


def weights_of(row: dict[str, Any]) -> NDArray[np.float64]:
    shape = (row["layers"], row["heads"], -1)
    weights: NDArray[np.float64] = np.reshape(row["weights"], shape) * np.reshape(row["scales"], shape)
    return weights


@pytest.mark.usefixtures("parts_of_two")
def test_three_shards_hold_the_rows_and_scores_of_one_to_the_last_bit(
    finished: Path, run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    extract(Extraction(run=str(finished), output=str(tmp_path)))
    for number in (3, 1, 2):
        extract(Extraction(run=str(finished), output=str(tmp_path), shard=f"{number}/3"))
    shards = [tmp_path / f"shard_{number}_of_3" for number in (1, 2, 3)]
    for name in ("test.parquet", "test_scores.parquet"):
        parts = [rows_of(shard / name) for shard in shards]
        assert all(parts)
        assert [row for part in parts for row in part] == rows_of(tmp_path / name)
    items = [(shard / "test_items.jsonl").read_text(encoding="utf-8") for shard in shards]
    assert "".join(items) == (tmp_path / "test_items.jsonl").read_text(encoding="utf-8")
    groups = [{json.loads(line)["group"] for line in shard.splitlines()} for shard in items]
    assert not groups[0] & groups[1] and not groups[1] & groups[2]
    # The scores are those of the rows before they are rounded, and the rows those of the whole split at once.
    captured = capture_run(run, evaluation_splits(run, "test").measured)
    for row, record in zip(rows_of(tmp_path / "test.parquet"), captured.records, strict=True):
        np.testing.assert_allclose(weights_of(row), record.weights, rtol=1e-3, atol=1e-6)
    assert "12 items, about 12 rows of 2 layers x 2 heads" in capsys.readouterr().out


def test_datasets_reads_the_shards_and_their_scores(finished: Path, tmp_path: Path) -> None:
    from datasets import load_dataset

    extract(Extraction(run=str(finished), output=str(tmp_path / "rows")))
    for name, column in (("test", "weights"), ("test_scores", "lift")):
        path = str(tmp_path / "rows" / f"{name}.parquet")
        loaded = load_dataset("parquet", data_files=path, cache_dir=str(tmp_path / "cache"))["train"]
        assert loaded[3][column] == rows_of(Path(path))[3][column]


@pytest.mark.usefixtures("parts_of_two")
def test_what_is_written_is_not_written_again_and_a_stopped_shard_leaves_nothing(
    own_run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    first = Extraction(run=str(own_run), shard="1/2")
    extract(first)
    path = own_run / "attention" / "shard_1_of_2" / "test.parquet"
    whole = path.read_bytes()
    batches = Extractor.batches

    def stopped(self: Extractor, parts: Any) -> Iterator[Any]:
        yield next(batches(self, parts))
        raise KeyboardInterrupt

    monkeypatch.setattr(Extractor, "batches", stopped)
    with pytest.raises(KeyboardInterrupt):
        extract(Extraction(run=str(own_run), shard="2/2"))
    assert not (own_run / "attention" / "shard_2_of_2").exists()
    extract(first)
    assert "already written" in capsys.readouterr().out
    with pytest.raises(UserError, match=r"test.parquet holds the results with items=null, which would be overwritten"):
        extract(Extraction(run=str(own_run), shard="1/2", items=8))
    path.with_name("test_scores.parquet").unlink()
    with pytest.raises(KeyboardInterrupt):
        extract(first)
    assert path.read_bytes() == whole
    monkeypatch.setattr(Extractor, "batches", batches)
    extract(first)
    assert path.with_name("test_scores.parquet").exists()


def test_memory_decides_how_many_weights_are_held_and_changes_none(run: Run, finished: Path, table: Path) -> None:
    selection = extraction.select_items(load_corpus(OwnExamples(path=str(table))), "train", None)
    parts = selection.parts()
    sizes, weights = {}, {}
    for most in (10**9, 500):
        batches = list(Extractor(run, selection, (), 128, most).batches(parts))
        sizes[most] = [sum(row.weights.size for row in batch.rows) for batch in batches]
        weights[most] = {row.item: row.weights for batch in batches for row in batch.rows}
    assert len(sizes[10**9]) == 1
    assert max(sizes[500]) <= 500 < sum(sizes[500])
    assert list(weights[500]) == list(range(36))
    for item, of_item in weights[500].items():
        np.testing.assert_allclose(of_item, weights[10**9][item], atol=1e-6)


def test_parts_hold_whole_groups_and_every_item_once() -> None:
    groups = ["a", "b", "", "a", *"cddd"]
    selection = Selection(groups, np.full(8, 10), lambda numbers: [])
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(extraction, "PART_ITEMS", 2)
        assert selection.parts() == [[0, 3], [1, 2], [4, 5, 6, 7]]
        assert selection.shard(1, 2) == [[0, 3]]
        assert selection.shard(2, 2) == [[1, 2], [4, 5, 6, 7]]
        patched.setattr(extraction, "PART_CHARACTERS", 10)
        assert selection.parts()[1:] == [[1], [2], [4], [5, 6, 7]]
        assert selection.limited(4).groups == ["a", "a", ""]
    with pytest.raises(UserError, match="take at most 1 shards"):
        selection.shard(1, 2)


def test_every_word_of_plain_text_attends_as_in_its_whole_map(
    finished: Path, run: Run, plain: PlainText, tmp_path: Path
) -> None:
    extract(Extraction(run=str(finished), data=plain, split="train", output=str(tmp_path)))
    items = [json.loads(line) for line in (tmp_path / "train_items.jsonl").read_text(encoding="utf-8").splitlines()]
    rows = rows_of(tmp_path / "train.parquet")
    assert not (tmp_path / "train_scores.parquet").exists()
    short = next(item for item in items if item["text"] == "The park is old.")
    own = [row for row in rows if row["item"] == short["item"]]
    assert [short["text"][row["query_start"] : row["query_end"]] for row in own] == ["The", "park", "is", "old", "."]
    tokens, maps = text_maps(run.model, run.tokenizer, short["text"])
    for word, row in enumerate(own):
        assert list(zip(row["starts"], row["ends"], strict=True)) == list(tokens.spans)
        of_word = [place for place, number in enumerate(tokens.words) if number == word]
        np.testing.assert_allclose(weights_of(row), maps[:, :, of_word].mean(axis=2), rtol=1e-3, atol=1e-6)


def test_chosen_words_attend_wherever_they_stand(finished: Path, plain: PlainText, tmp_path: Path) -> None:
    extract(Extraction(run=str(finished), data=plain, split="train", words=["PARK", "she"], output=str(tmp_path)))
    items = [json.loads(line) for line in (tmp_path / "train_items.jsonl").read_text(encoding="utf-8").splitlines()]
    rows = rows_of(tmp_path / "train.parquet")
    texts = {item["item"]: item["text"] for item in items}
    words = [texts[row["item"]][row["query_start"] : row["query_end"]] for row in rows]
    assert sorted(words) == ["park", "park", "park", "she"]
    with pytest.raises(UserError, match=r"words \(\['zebra'\]\) appear in none of 3 texts"):
        extract(Extraction(run=str(finished), data=plain, split="train", words=["zebra"], output=str(tmp_path / "no")))


def test_rows_of_other_words_or_of_a_text_in_another_language_are_not_overwritten(
    finished: Path, plain: PlainText, tmp_path: Path
) -> None:
    given: dict[str, Any] = {"run": str(finished), "data": plain, "split": "train", "output": str(tmp_path)}
    extract(Extraction(**given, words=["park"]))
    whole = (tmp_path / "train.parquet").read_bytes()
    message = r'train.parquet holds the results with words=\["park"\], which would be overwritten'
    with pytest.raises(UserError, match=message):
        extract(Extraction(**given))
    assert (tmp_path / "train.parquet").read_bytes() == whole
    for language in ("en", "zh"):
        extract(Extraction(run=str(finished), text="Anna left.", language=language, output=str(tmp_path / "text")))
    assert len(list((tmp_path / "text").glob("*.parquet"))) == 2


def test_long_texts_are_cut_between_words_and_keep_their_characters(run: Run) -> None:
    whole = queried_chunks([TEXT], run.tokenizer, 100)
    chunks = queried_chunks([TEXT], run.tokenizer, 9)
    assert len(whole) == 1 and len(chunks) > 2
    assert max(len(chunk.tokens.ids) for chunk in chunks) <= 9
    assert [query for chunk in chunks for query in chunk.queries] == list(whole[0].queries)
    assert all(chunk.tokens.spans[0] == (0, 0) and chunk.tokens.words[0] == -1 for chunk in chunks)
    for chunk in chunks:
        for query, tokens in zip(chunk.queries, chunk.query_tokens, strict=True):
            assert (chunk.tokens.spans[tokens[0]][0], chunk.tokens.spans[tokens[-1]][1]) == query
    mention = queried_chunks([TEXT], run.tokenizer, 9, ["the park. Tom met Anna"])
    assert [len(chunk.queries) for chunk in mention] == [1]  # cut, and there where it begins


def test_a_sentence_without_a_pronoun_has_a_row_for_each_word(finished: Path, tmp_path: Path) -> None:
    for words, starts in (([], [0, 5, 9, 12]), (["Tom"], [9])):
        folder = tmp_path / str(len(words))
        extract(Extraction(run=str(finished), text="Anna met Tom.", words=words, output=str(folder)))
        (path,) = folder.glob("*.parquet")
        assert [row["query_start"] for row in rows_of(path)] == starts


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"shard": "4/3"}, "shard ('4/3') must be i/n with i from 1 to n, as in 2/8"),
        ({"shard": "1"}, "shard ('1') must be i/n"),
        ({"shard": "1/2", "text": "Anna"}, "text is one sentence"),
        ({"memory": 0}, "memory (0) must be at least 1"),
        ({"text": "she left", "pronoun": "she", "words": ["left"]}, "words (['left']) is only for a text without"),
        ({"pronoun": "she"}, "pronoun ('she') needs text=..."),
        ({"language": "en"}, "language ('en') needs text=..."),
        ({"text": "she left", "language": "xx"}, "language ('xx') must be one of en, zh"),
        ({"text": "she left", "candidates": ["Anna"]}, "candidates (['Anna']) need pronoun=..."),
        ({"text": "she left", "split": "dev"}, "split ('dev') chooses items of data, but text is one sentence"),
        ({"text": "she left", "items": 3}, "items (3) chooses items of data, but text is one sentence"),
        ({"text": "she left", "data": Gap(path="x")}, "data=gap and text=... are both given: give one of them"),
        ({"words": [" "]}, "must name at least one word"),
    ],
)
def test_what_does_not_go_together_is_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises((UserError, ValueError)) as error:
        Extraction(**settings)
    assert message in str(error.value)


def test_words_of_items_with_pronouns_are_refused(finished: Path, tmp_path: Path, script: Callable[..., Any]) -> None:
    result = script("extract", f"run={finished}", "words=[park]", f"output={tmp_path / 'out'}")
    assert (result.status, result.out) == (2, f"run: {finished}\n")
    assert "words (['park']) is only for texts; the items of data=jsonl have pronouns" in result.err
    shutil.rmtree(tmp_path / "out", ignore_errors=True)

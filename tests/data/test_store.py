from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from anaphora.base import code
from anaphora.base.errors import UserError
from anaphora.base.files import DRAFT_PREFIX
from anaphora.commands.parts.shared import data_settings
from anaphora.data import records, store
from anaphora.data.controlled import corpus
from anaphora.data.corpora import dpr
from anaphora.data.corpora.division import ReadingReport
from anaphora.data.example import Example
from anaphora.settings.data import ControlledCorpus, Data, Dpr, LabelledText, OwnExamples

SMALL = ControlledCorpus(languages=["zh"], train_items=100, test_items=20)
BLOCK = "she met Anna after Berta {}.\nshe\nAnna,Berta\nAnna\n\n"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ANAPHORA_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def dpr_file(tmp_path: Path) -> Path:
    path = tmp_path / "train.c.txt"
    path.write_text("".join(BLOCK.format(f"ran {number} miles") for number in range(8)))
    return path


@pytest.mark.parametrize("groups", [0, 3, 4, 5, 8])
def test_groups_become_rows_whether_or_not_the_last_part_is_full(groups: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "_GROUPS_AT_ONCE", 4)
    rows = records.GroupRows()
    for number in range(groups):
        text = f"Ann met Bea {number} times; she left."
        start = text.index("she")
        example = Example(
            text=text, language="en", pronoun=(start, start + 3), candidates=(((0, 3),), ((8, 11),)), antecedents=(0,)
        )
        rows.append([example] * (1 + number % 2))
    order = list(reversed(range(groups)))
    texts = [f"Ann met Bea {number} times; she left." for number in order for _ in range(1 + number % 2)]
    assert rows.table(order).column("text").to_pylist() == texts


def test_decoded_examples_are_those_that_were_written_whatever_their_factors_hold() -> None:
    plain = Example(text="Ann ran.", language="en", pronoun=(0, 3), candidates=(), antecedents=())
    items = [
        replace(plain, factors=factors, candidates=candidates, antecedents=(0,) * len(candidates))
        for candidates in ((), (((4, 7),),))
        for factors in ({}, {"cue": "冷", "type": 'a "quoted", name'}, {"cue": "}, {"}, {"cue": ""})
    ]
    for some in (items, items[:2], items[:1], items[2:3]):
        read = records.decoded(records.table_of(some, records.schema_of()))
        assert read == some
        assert list(map(repr, read)) == list(map(repr, some))


def test_what_is_read_back_is_what_was_made() -> None:
    splits = corpus.generate(SMALL)
    for _ in range(2):
        loaded = store.load(SMALL)
        assert {split: loaded.examples(split) for split in loaded.splits} == splits
    assert loaded.report.rows == sum(map(len, splits.values()))
    assert set(corpus.words("zh")) <= set(loaded.words)


def test_the_splits_are_arrow_tables_with_the_schema() -> None:
    split = store.load(SMALL).splits["train"]
    assert split.schema == records.schema_of()
    assert json.loads(split.column("factors")[0].as_py())["template"]


def test_the_second_time_nothing_is_made(dpr_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = store.load(Dpr(path=str(dpr_file)))
    monkeypatch.setattr(dpr, "read", None)
    assert store.load(Dpr(path=str(dpr_file))).fingerprint == first.fingerprint


SHARED = "and then they walked along the river until it was dark"


@pytest.fixture
def asked(tmp_path: Path) -> Path:
    path = tmp_path / "asked.txt"
    path.write_text(f"We ate {SHARED}, all of us.")
    return path


def test_items_that_share_words_with_evaluation_data_are_left_out_with_their_twins(tmp_path: Path, asked: Path) -> None:
    pair_rows = BLOCK.format("slept") + BLOCK.format(SHARED)
    path = tmp_path / "train.c.txt"
    path.write_text(pair_rows + BLOCK.format("ran a mile") * 2)
    whole, apart = (
        store.load(Dpr(path=str(path), without=without, test_share=0, dev_share=0)) for without in ([], [str(asked)])
    )
    assert (len(whole.examples("train")), len(apart.examples("train"))) == (4, 2)
    assert [one.text for one in apart.examples("train")] == [one.text for one in whole.examples("train")[2:]]
    assert apart.report.rows == 4
    assert apart.report.reasons == {"it or one of its group shares 8 words in a row with asked.txt": 2}


def test_an_item_is_left_out_with_a_minimal_pair_that_has_no_group(tmp_path: Path, asked: Path) -> None:
    rows = [
        {
            "text": f"Ann met Eve {way} and she sat.",
            "pronoun": [len(f"Ann met Eve {way} and "), len(f"Ann met Eve {way} and she")],
            "candidates": [[0, 3], [8, 11]],
            "antecedents": [0],
            "minimal_pair": pair_name,
            "language": "en",
        }
        for way, pair_name in ((SHARED, "a"), ("late", "a"), ("early", "b"))
    ]
    path = tmp_path / "items.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    loaded = store.load(OwnExamples(path=str(path), without=[str(asked)], test_share=0, dev_share=0))
    assert [one.minimal_pair for one in loaded.examples("train")] == ["b"]


def test_labelled_texts_that_share_words_with_evaluation_data_are_left_out_alone(tmp_path: Path, asked: Path) -> None:
    path = tmp_path / "texts.tsv"
    path.write_text(f"text\tlabel\nHe came {SHARED}.\tbad\nHe came and went.\tgood\nShe sang.\tgood\n")
    loaded = store.load(LabelledText(path=str(path), without=[str(asked)], test_share=0, dev_share=0))
    assert [one.text for one in loaded.texts("train")] == ["He came and went.", "She sang."]


def test_evaluation_data_that_leave_nothing_are_refused(dpr_file: Path) -> None:
    dpr_file.write_text(BLOCK.format(SHARED) * 2)
    with pytest.raises(UserError, match=r"data.without .*: every item of data.path .* shares 8 words in a row with it"):
        store.load(Dpr(path=str(dpr_file), without=[str(dpr_file)]))


def test_other_evaluation_data_are_another_corpus(dpr_file: Path, asked: Path) -> None:
    settings = Dpr(path=str(dpr_file), without=[str(asked)])
    before = store.load(settings).fingerprint
    asked.write_text("Something else that nobody in this house ever said.")
    assert store.load(settings).fingerprint != before


def test_a_change_of_the_reader_changes_the_fingerprint_of_what_it_reads_alone(
    dpr_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    examples = dpr_file.with_name("items.jsonl")
    examples.write_text("{}\n", encoding="utf-8")
    corpora = [Dpr(path=str(dpr_file)), OwnExamples(path=str(examples))]
    before = [store._fingerprint(one) for one in corpora]
    read = code._read
    monkeypatch.setattr(code, "_read", lambda path: ("changed", read(path)[1]) if path.name == "dpr.py" else read(path))
    changed = [store._fingerprint(one) != it for one, it in zip(corpora, before, strict=True)]
    assert changed == [True, False]


def test_settings_and_file_content_change_the_fingerprint(dpr_file: Path) -> None:
    before = store.load(Dpr(path=str(dpr_file)))
    assert store.load(Dpr(path=str(dpr_file), seed=1)).fingerprint != before.fingerprint
    dpr_file.write_text(dpr_file.read_text() + BLOCK.format("slept"))
    after = store.load(Dpr(path=str(dpr_file)))
    assert (before.report.rows, after.report.rows) == (8, 9)


def test_of_a_folder_the_files_that_are_read_count_and_no_results_that_are_written_there(tmp_path: Path) -> None:
    (tmp_path / "train.c.txt").write_text(BLOCK.format("ran"))
    settings = Dpr(path=str(tmp_path), dev_share=0.0, test_share=0.0)
    before, identity = store.load(settings).fingerprint, data_settings(settings)
    (tmp_path / "outputs").mkdir()
    for name in ("outputs/train.c.txt", "table.csv", ".notes"):
        (tmp_path / name).write_text("x")
    assert (store.load(settings).fingerprint, data_settings(settings)) == (before, identity)
    (tmp_path / "test.c.txt").write_text(BLOCK.format("slept"))
    assert store.load(settings).fingerprint != before
    assert data_settings(settings) != identity


def test_a_stop_in_the_middle_leaves_nothing_behind(
    cache: Path, dpr_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(store, "table_of", stop)
        with pytest.raises(KeyboardInterrupt):
            store.load(Dpr(path=str(dpr_file)))
    assert list(cache.iterdir()) == []
    assert store.load(Dpr(path=str(dpr_file))).examples("train")


def test_what_a_killed_process_left_in_the_cache_goes_though_nothing_is_made(cache: Path, dpr_file: Path) -> None:
    store.load(Dpr(path=str(dpr_file)))
    (cache / f"{DRAFT_PREFIX}0" / "train").mkdir(parents=True)
    store.load(Dpr(path=str(dpr_file)))
    assert not list(cache.glob(f"{DRAFT_PREFIX}*"))


def test_two_that_make_the_same_corpus_do_not_disturb_each_other(
    cache: Path, dpr_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = dpr.read

    def overtaken(settings: Dpr) -> object:
        monkeypatch.setattr(dpr, "read", read)
        store.load(settings)  # the other one is faster
        return read(settings)

    monkeypatch.setattr(dpr, "read", overtaken)
    assert store.load(Dpr(path=str(dpr_file))).examples("train")
    assert len(list(cache.iterdir())) == 1


def test_a_damaged_cache_is_named(cache: Path, dpr_file: Path) -> None:
    store.load(Dpr(path=str(dpr_file)))
    (about,) = cache.glob("*/about.json")
    about.write_text("{")
    with pytest.raises(UserError, match=r"the cache is damaged .* delete this folder"):
        store.load(Dpr(path=str(dpr_file)))


def test_a_cache_in_which_anything_is_changed_is_named(cache: Path, dpr_file: Path) -> None:
    store.load(Dpr(path=str(dpr_file)))
    (folder,) = cache.iterdir()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        content = path.read_bytes()
        for damaged in (b"", b"{}", b"[]", content[:-2], content.replace(b"1", b"2"), content.replace(b"ran", b"run")):
            if damaged == content:
                continue
            path.write_bytes(damaged)
            with pytest.raises(UserError, match=r"the cache is damaged .* delete this folder"):
                store.load(Dpr(path=str(dpr_file)))
        path.write_bytes(content)
    assert store.load(Dpr(path=str(dpr_file))).examples("train")


def test_a_cache_that_cannot_be_written_is_reported_before_the_corpus_is_read(
    tmp_path: Path, dpr_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANAPHORA_CACHE", str(dpr_file))
    monkeypatch.setattr(dpr, "read", None)
    with pytest.raises(UserError, match=r"cannot be written .*; the cache is there, so set ANAPHORA_CACHE"):
        store.load(Dpr(path=str(dpr_file)))


def test_an_empty_split_stays_empty(dpr_file: Path) -> None:
    for _ in range(2):
        loaded = store.load(Dpr(path=str(dpr_file), dev_share=0.0, test_share=0.25))
        assert [len(loaded.examples(split)) for split in ("train", "dev", "test")] == [6, 0, 2]
        assert loaded.examples("dev", []) == []
    assert loaded.words == ()


def test_the_report_survives_the_cache(tmp_path: Path) -> None:
    path = tmp_path / "train.c.txt"
    path.write_text(BLOCK.format("ran") + "she met Anna.\nshe\nAnna,Berta\nAnna\n")
    settings = Dpr(path=str(path), dev_share=0.0, test_share=0.0)
    expected = dpr.read(settings)[1]
    assert expected.dropped
    store.load(settings)
    assert store.load(settings).report == expected


def test_a_missing_file_a_missing_split_and_an_unknown_kind_are_named(tmp_path: Path, dpr_file: Path) -> None:
    with pytest.raises(UserError, match=r"data.path .*none.jsonl\): there is no such file"):
        store.load(OwnExamples(path=str(tmp_path / "none.jsonl")))
    with pytest.raises(UserError, match=r"split \('valid'\) must be one of train, dev, test"):
        store.load(Dpr(path=str(dpr_file))).examples("valid")
    with pytest.raises(UserError, match=r"data.kind \('other'\)"):
        store.load(Data(kind="other"))


def test_reading_back_takes_a_fraction_of_reading_the_file(tmp_path: Path) -> None:
    path = tmp_path / "train.c.txt"
    path.write_text("".join(BLOCK.format(f"ran {number} miles") for number in range(5000)))
    settings = Dpr(path=str(path))

    def seconds_to_read() -> float:
        start = time.process_time()
        loaded = store.load(settings)
        assert sum(len(loaded.examples(split)) for split in loaded.splits) == 5000
        return time.process_time() - start

    first = seconds_to_read()
    again = min(seconds_to_read() for _ in range(3))  # the least, since a busy machine only adds to it
    assert again < first / 5  # it was a twenty-fifth


def test_importing_the_store_imports_nothing_heavy() -> None:
    heavy = "datasets, torch, pandas, pyarrow, sklearn"
    code = f"import sys, anaphora.data.store; print([n for n in '{heavy}'.split(', ') if n in sys.modules])"
    process = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={"PYTHONPATH": ":".join(sys.path)}
    )
    assert process.stdout.strip() == "[]"


def test_folds_take_turns_as_the_dev_split_and_leave_the_test_split_alone(tmp_path: Path) -> None:
    path = tmp_path / "items.jsonl"
    rows = [
        {"text": f"Anna saw Tom {number % 20}, she ran", "language": "en", "pronoun": [0, 4], "candidates": [[9, 12]]}
        for number in range(40)
    ]
    path.write_text("\n".join(json.dumps({**row, "antecedents": [0]}) for row in rows), encoding="utf-8")
    whole = [store.load(OwnExamples(path=str(path), folds=4, fold=fold, test_share=0.2)) for fold in range(4)]
    test = {example.text for example in whole[0].examples("test")}
    texts: list[str] = []
    for each in whole:
        train, dev = ({example.text for example in each.examples(name)} for name in ("train", "dev"))
        assert not train & dev
        assert len(train | dev) == 16
        assert {example.text for example in each.examples("test")} == test
        texts += dev
    assert len(texts) == len(set(texts)) == 16


@pytest.mark.parametrize(
    ("folds", "fold", "message"),
    [(1, 0, "data.folds (1)"), (4, 4, "(4)"), (4, -1, "fold (-1)"), (None, 1, "(not set)")],
)
def test_folds_that_do_not_exist_are_refused(folds: int | None, fold: int, message: str) -> None:
    with pytest.raises(UserError, match=r"data\.fold") as refused:
        OwnExamples(path="items.jsonl", folds=folds, fold=fold)
    assert message in str(refused.value)


def test_a_corpus_with_parts_of_words_can_be_read_as_own_data(tmp_path: Path) -> None:
    settings = OwnExamples(path=str(tmp_path / "train.parquet"), dev_share=0, test_share=0)
    spans = (((10, 13),), ((15, 19),))
    item = Example(text="Anna said shes here.", language="en", pronoun=(5, 9), candidates=spans, antecedents=(0,))
    splits = {"train": records.table_of([item], records.schema_of())}
    corpus = store.Corpus(splits=splits, words=(), report=ReadingReport(1), fingerprint="")
    corpus.write_items(tmp_path, records.item_columns(settings))
    assert store.load(settings).examples("train") == [replace(item, factors={"word_parts": "10"})]

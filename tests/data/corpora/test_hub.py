"""Tests of corpora from the Hub, with the real `datasets` library on local files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import datasets
import pytest
from readings import everything, right

from anaphora.base.errors import UserError
from anaphora.data import store
from anaphora.data.corpora import cluewsc, gap, plain_text, winogrande
from anaphora.settings.data import Cluewsc, Data, Gap, Knowref, PlainText, Winogrande

Asked = list[tuple[str, str | None]]


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Asked]:
    """Return a folder whose files `load_dataset` reads for any name, and the list of requested names."""
    requests: Asked = []
    real = datasets.load_dataset

    def local(name: str, configuration: str | None = None) -> Any:
        requests.append((name, configuration))
        files = {path.stem: str(path) for path in (tmp_path / "hub").glob("*.jsonl")}
        return real("json", data_files=files, cache_dir=str(tmp_path / "arrow"))

    monkeypatch.setattr(datasets, "load_dataset", local)
    (tmp_path / "hub").mkdir()
    return tmp_path / "hub", requests


def write(path: Path, *rows: dict[str, Any]) -> None:
    path.write_text("\n".join(json.dumps(row, ensure_ascii=False) for row in rows), encoding="utf-8")


def test_winogrande_rows_of_the_hub_group_by_their_options(hub: tuple[Path, Asked]) -> None:
    folder, requests = hub
    row = {"option1": "Maud", "option2": "Ida", "answer": "2"}
    rows = [{**row, "sentence": f"Ida lent Maud a pot since _ had {number}."} for number in range(4)]
    write(folder / "train.jsonl", *rows, {**row, "option2": "Ann", "sentence": "Ann saw Maud, as _ looked."})
    write(folder / "validation.jsonl", {**row, "sentence": "Maud wrote to Ida since _ cared."})
    splits, report = winogrande.read(Winogrande(path="hf://allenai/winogrande/winogrande_xs", dev_share=0.5))
    assert requests == [("allenai/winogrande", "winogrande_xs")]
    assert sorted(len(splits[name]) for name in ("train", "dev")) == [1, 4]
    assert (right(splits["test"][0]), report.rows) == (["Ida"], 6)


def test_the_hub_names_of_class_labels_are_read(hub: tuple[Path, Asked], monkeypatch: pytest.MonkeyPatch) -> None:
    text = "小周和小吴来了，他唱歌。"
    target = {"span1_index": 0, "span1_text": "小周", "span2_index": 8, "span2_text": "他"}
    other = {**target, "span1_index": 3, "span1_text": "小吴"}
    labels = datasets.ClassLabel(names=["true", "false"])
    rows = datasets.Dataset.from_list(
        [{"text": text, "target": target, "label": 1}, {"text": text, "target": other, "label": 0}]
    ).cast_column("label", labels)
    unknown = datasets.Dataset.from_list([{"text": text, "target": target, "label": -1}]).cast_column("label", labels)
    loaded = datasets.DatasetDict({"train": rows, "validation": unknown})
    monkeypatch.setattr(datasets, "load_dataset", lambda name, configuration: loaded)
    settings = Cluewsc(path="hf://clue/clue/cluewsc2020", dev_share=0.0)
    splits, report = cluewsc.read(settings)
    assert right(splits["train"][0]) == ["小吴"]
    assert report.reasons == {"it has no label": 1}


def test_gap_rows_of_the_hub_have_numbers_and_truth_values(hub: tuple[Path, Asked]) -> None:
    row = {"ID": "x", "Text": "Ida saw Maud and she ran.", "Pronoun": "she", "Pronoun-offset": 17, "A": "Ida"}
    row |= {"A-offset": 0, "A-coref": False, "B": "Maud", "B-offset": 8, "B-coref": True, "URL": "http://x/Maud"}
    write(hub[0] / "train.jsonl", row)
    (example,) = everything(gap.read(Gap(path="hf://mine/gap"))[0])
    assert right(example) == ["Maud"]


def test_plain_text_of_the_hub_keeps_its_splits_where_one_is_for_validation(hub: tuple[Path, Asked]) -> None:
    folder, requests = hub
    pages = [{"text": f"The mill stood still.\n\nPage {number} ends here.", "title": "Mill"} for number in range(10)]
    write(folder / "train.jsonl", *pages, {"text": " ", "title": None})
    settings = PlainText(path="hf://someone/pages/en", dev_share=0.2, test_share=0.1)
    divided, report = plain_text.read(settings)
    assert requests == [("someone/pages", "en")]
    assert [len(divided[split]) for split in ("train", "dev", "test")] == [7, 2, 1]
    assert divided["dev"][0].text.startswith("The mill stood still.\nPage ") and divided["dev"][0].title == "Mill"
    assert report.rows == 20
    write(folder / "validation.jsonl", {"text": "A last page.", "title": "End"})
    kept, _ = plain_text.read(settings)
    assert [len(kept[split]) for split in ("train", "dev", "test")] == [10, 1, 0]


def test_plain_text_of_the_hub_stands_beside_files(hub: tuple[Path, Asked], tmp_path: Path) -> None:
    write(hub[0] / "train.jsonl", {"text": "From afar."})
    (tmp_path / "own.txt").write_text("From here.", encoding="utf-8")
    settings = PlainText(path=str(tmp_path / "own.txt"), also=["hf://someone/pages"], dev_share=0.0, test_share=0.0)
    assert {one.text for one in store.load(settings).texts("train")} == {"From here.", "From afar."}


def test_a_row_of_the_hub_without_text_is_named(hub: tuple[Path, Asked]) -> None:
    write(hub[0] / "train.jsonl", {"content": "x"})
    with pytest.raises(UserError, match=r"hf://someone/pages, train row 1, text: it is missing"):
        plain_text.read(PlainText(path="hf://someone/pages"))


@pytest.mark.parametrize(
    ("settings", "file"),
    [
        (PlainText(path="hf://owner/pages"), "a file or folder of text"),
        (Gap(path="hf://owner/gap"), "a folder with gap-development.tsv and gap-validation.tsv"),
        (Winogrande(path="hf://owner/winogrande"), "a folder with train_<size>.jsonl (xs, s, m, l, xl) and dev.jsonl"),
        (Cluewsc(path="hf://owner/clue"), "a folder with train.json and dev.json"),
    ],
)
def test_without_a_network_the_file_that_would_do_is_named(
    settings: Data, file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def offline(name: str, configuration: str | None) -> None:
        raise ConnectionError("Couldn't reach the hub\nand more")

    monkeypatch.setattr(datasets, "load_dataset", offline)
    with pytest.raises(UserError) as error:
        store.load(settings)
    assert "not available from the hub (Couldn't reach the hub)" in str(error.value)
    assert f"data.path={file}" in str(error.value)


def test_a_wrong_hub_name_and_a_corpus_without_one_are_named(hub: tuple[Path, Asked]) -> None:
    with pytest.raises(UserError, match=r"\(hf://gap\) must be hf://owner/name or hf://owner/name/config"):
        gap.read(Gap(path="hf://gap"))
    with pytest.raises(UserError, match=r"is only read from a file or folder; needed: knowref_test\.json"):
        store.load(Knowref(path="hf://owner/knowref"))
    write(hub[0] / "test.jsonl", {"sentence": "x"})
    with pytest.raises(UserError, match="it has no split train; it has test"):
        winogrande.read(Winogrande(path="hf://owner/winogrande"))


def test_what_the_hub_gave_is_cached(hub: tuple[Path, Asked]) -> None:
    row = {"option1": "Maud", "option2": "Ida", "answer": "2", "sentence": "Ida lent Maud a pot since _ had two."}
    write(hub[0] / "train.jsonl", row)
    settings = Winogrande(path="hf://mine/winogrande", dev_share=0.0, test_share=0.0)
    for _ in range(2):
        assert len(store.load(settings).examples("train")) == 1
    assert len(hub[1]) == 1

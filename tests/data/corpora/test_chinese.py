"""Tests of the readers of CLUEWSC2020, Mandarinograd and XWINO."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from readings import everything, pairs_in_one_split, pronoun, right, words

from anaphora.base.errors import UserError
from anaphora.data.corpora import cluewsc, mandarinograd, xwino
from anaphora.data.corpora.word_classes import word_form
from anaphora.settings.data import Cluewsc, Mandarinograd, Xwino

TEXT = "𠮷田把伞借给阿梅的姐姐，阿梅说伞很旧，因为它漏水。"
"""The first character is outside the Basic Multilingual Plane: two code units in UTF-16, one code point."""


def claim(words: str, label: str | None, nth: int = 0, text: str = TEXT, pronoun: str = "它") -> dict[str, Any]:
    """Return a row that asks whether the pronoun refers to the nth occurrence of some words."""
    at = -1
    for _ in range(nth + 1):
        at = text.index(words, at + 1)
    target = {"span1_index": at, "span1_text": words, "span2_index": text.index(pronoun), "span2_text": pronoun}
    return {"target": target, "text": text} | ({} if label is None else {"label": label})


def clue(path: Path, *rows: dict[str, Any]) -> Cluewsc:
    path.write_text("\n".join(json.dumps(row, ensure_ascii=False) for row in rows), encoding="utf-8")
    return Cluewsc(path=str(path), dev_share=0.0, test_share=0.0)


def test_rows_about_one_pronoun_become_one_example_and_equal_words_one_candidate(tmp_path: Path) -> None:
    rows = [claim("𠮷田", "false"), claim("伞", "true", 1), claim("阿梅", "false", 1), claim("伞", "true")]
    splits, report = cluewsc.read(clue(tmp_path / "train.json", *rows))
    (example,) = splits["train"]
    assert words(example) == [["𠮷田"], ["伞", "伞"], ["阿梅"]]
    assert (pronoun(example), right(example), example.language) == ("它", ["伞"], "zh")
    assert (report.rows, report.dropped) == (4, ())


def test_two_true_candidates_are_both_antecedents_and_a_lone_false_one_leaves_none(tmp_path: Path) -> None:
    other = "小周和小吴来了，他们很高兴，他唱歌。"
    rows = [
        claim("小周", "true", text=other, pronoun="他们"),
        claim("小吴", "true", text=other, pronoun="他们"),
        claim("伞", "false"),
    ]
    examples = cluewsc.read(clue(tmp_path / "train.json", *rows))[0]["train"]
    assert [example.antecedents for example in examples] == [(0, 1), ()]
    assert len(examples[1].candidates) == 1


def test_overlapping_candidates_are_dropped_but_never_the_right_one(tmp_path: Path) -> None:
    rows = [claim("阿梅", "false"), claim("阿梅的姐姐", "true"), claim("姐姐", "false")]
    splits, report = cluewsc.read(clue(tmp_path / "train.json", *rows))
    assert words(splits["train"][0]) == [["阿梅的姐姐"]]
    assert report.reasons == {"the candidate overlaps another one of its pronoun": 2}


def test_a_candidate_that_is_labelled_both_ways_is_named_and_counts_as_true(tmp_path: Path) -> None:
    splits, report = cluewsc.read(clue(tmp_path / "train.json", claim("伞", "false"), claim("伞", "true")))
    assert (words(splits["train"][0]), splits["train"][0].antecedents) == ([["伞"]], (0,))
    assert report.reasons == {"another row labels the same candidate true": 1}


def test_equal_rows_are_read_once_and_rows_without_a_label_not_at_all(tmp_path: Path) -> None:
    rows = [claim("伞", "true"), claim("伞", "true"), claim("阿梅", None)]
    splits, report = cluewsc.read(clue(tmp_path / "train.json", *rows))
    assert words(splits["train"][0]) == [["伞"]]
    assert report.reasons == {"the same row appears twice": 1, "it has no label": 1}


def test_texts_stay_together_and_the_development_file_is_the_test_split(tmp_path: Path) -> None:
    rows = [
        claim(name, "true", text=f"{number}号小周和小吴来了，他们很高兴，他唱歌。", pronoun=pronoun_text)
        for number in range(20)
        for name, pronoun_text in (("小周", "他们"), ("小吴", "他唱"))
    ]
    for row in rows:
        row["target"]["span2_text"] = row["target"]["span2_text"].replace("他唱", "他")
    clue(tmp_path / "train.json", *rows)
    clue(tmp_path / "dev.json", claim("伞", "true"))
    splits, _ = cluewsc.read(Cluewsc(path=str(tmp_path), dev_share=0.25))
    assert {name: len(examples) for name, examples in splits.items()} == {"train": 30, "dev": 10, "test": 1}
    assert not {each.text for each in splits["train"]} & {each.text for each in splits["dev"]}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"label": "maybe"}, "train.json, line 1, label: 'maybe' must be true or false"),
        ({"target": 3}, "line 1, target: 3 must hold span1_index"),
        ({"text": "短。"}, "line 1, target: span2_index: the text at 21 is '', not '它'"),
    ],
)
def test_a_broken_cluewsc_row_is_named(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        cluewsc.read(clue(tmp_path / "train.json", {**claim("伞", "true"), **change}))


HEADER = "idx\torig_id\tsentence_man\tsnippet_man\tanswer1_man\tanswer2_man\tcorrect_answer_man"
SCHEMAS = [
    "0\t1\tAnn Lee 把 伞 借给 了 Maud ， 因为 她 有 两把 。\t谁 有 两把 ？\tAnn Lee\tMaud\tAnn Lee",
    "1\t1\tAnn Lee 把 伞 借给 了 Maud ， 因为 她 没有 。\t谁 没有 ？\tAnn Lee\tMaud\tMaud",
    "2\t2\t小货车 撞 了 鸟笼 ， 所以 它 坏 了 。\t什么 坏 了 ？\t货车\t鸟笼\t鸟笼",
    "3\t3\t小周 拉 了 Ida ， 扯 了 她 的 袖子 。\t谁 的 袖子 ？\t小周 的\tIda 的\tIda 的",
]


def schemas(folder: Path, *rows: str) -> Mandarinograd:
    path = folder / "mandarinograd.tsv"
    path.write_text("\n".join([HEADER, *rows]) + "\n", encoding="utf-8")
    return Mandarinograd(path=str(path), dev_share=0.0, test_share=0.5)


def test_words_are_joined_and_answers_found_as_words_or_heads_of_compounds(tmp_path: Path) -> None:
    by_text = {example.text: example for example in everything(mandarinograd.read(schemas(tmp_path, *SCHEMAS))[0])}
    lent = by_text["Ann Lee把伞借给了Maud，因为她有两把。"]
    assert (pronoun(lent), words(lent), right(lent)) == ("她", [["Ann Lee"], ["Maud"]], ["Ann Lee"])
    hit = by_text["小货车撞了鸟笼，所以它坏了。"]
    assert (words(hit), right(hit)) == ([["货车"], ["鸟笼"]], ["鸟笼"])
    assert right(by_text["小周拉了Ida，扯了她的袖子。"]) == ["Ida"]


def test_both_rows_of_a_schema_are_minimal_pairs_in_one_split(tmp_path: Path) -> None:
    splits, _ = mandarinograd.read(schemas(tmp_path, *SCHEMAS))
    assert len({example.minimal_pair for example in everything(splits)}) == 3
    assert pairs_in_one_split(splits)


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("小周 帮 了 小吴 ， 很 累 。\t谁 累 ？\t小周\t小吴\t小周", "no overt pronoun"),
        (
            "小周 帮 他 ， 他 累 ， 小吴 来 。\t谁 累 ？\t小周\t小吴\t小周",
            "several overt pronouns, none of them marked",
        ),
        ("小周 帮 了 小吴 ， 他 累 。\t谁 累 ？\t小周\t小郑\t小周", "a candidate is not in the sentence"),
        ("老鼠洞 边 有 猫 ， 它 等 。\t谁 等 ？\t老鼠\t猫\t猫", "a candidate is not in the sentence"),
        ("LeeAnn 帮 了 小吴 ， 她 累 。\t谁 累 ？\tAnn\t小吴\tAnn", "a candidate is not in the sentence"),
        ("小周 帮 了 小吴 ， 他 累 。\t谁 累 ？\t小周\t小吴\t小郑", "the right answer is neither of the two"),
        ("小周 帮 了 小周 ， 他 累 。\t谁 累 ？\t小周\t小周\t小周", "two candidates are the same"),
        ("他 搬 椅子 到 桌子 前 ， 坏 了 。\t什么 坏 了 ？\t椅子\t桌子\t椅子", "its question is not about the pronoun"),
        ("他 从 东村 去 西村 ， 那儿 冷 。\t哪里 冷 ？\t东村\t西村\t西村", "its question is not about the pronoun"),
        ("小周 帮 了 小吴 ， 他 [累/乐] 。\t谁 ？\t小周\t小吴\t小周", "the sentence still holds the other ending"),
    ],
)
def test_a_schema_that_cannot_be_asked_is_dropped_with_its_reason(tmp_path: Path, row: str, reason: str) -> None:
    splits, report = mandarinograd.read(schemas(tmp_path, f"0\t1\t{row}"))
    assert not everything(splits)
    assert report.reasons == {reason: 1}


def test_a_missing_column_or_cell_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="line 2: the number of cells differs from the header's 7"):
        mandarinograd.read(schemas(tmp_path, SCHEMAS[0] + "\tmore"))
    (tmp_path / "mandarinograd.tsv").write_text("idx\tsentence_man\n")
    with pytest.raises(UserError, match="line 1: columns orig_id, snippet_man, answer1_man"):
        mandarinograd.read(Mandarinograd(path=str(tmp_path / "mandarinograd.tsv")))
    with pytest.raises(UserError, match="it has no row below the header"):
        mandarinograd.read(schemas(tmp_path))


def xrow(language: str, text: str, tokens: list[str], pronoun_token: int, names: list[tuple[int, int, bool]]) -> str:
    marked = [tokens[pronoun_token], [pronoun_token, pronoun_token + 1], [tokens[pronoun_token]]]
    candidates = [[" ".join(tokens[start:end]), [start, end], tokens[start:end], right] for start, end, right in names]
    cells = [language, "mine", "?", text, *(json.dumps(each) for each in (tokens, marked, candidates))]
    return "\t".join(cells)


TOKENS = "Ida 's aunt said `` it '' when the jug hit the wall , as it {} ."
ENGLISH = [
    xrow(
        "en",
        f'Ida\'s aunt said "it" when the jug hit the wall, as it {verb}.',
        TOKENS.format(verb).split(),
        15,
        [(11, 13, verb == "cracked"), (8, 10, verb == "slipped")],
    )
    for verb in ("cracked", "slipped")
]
CHINESE = xrow(
    "zh",
    "小周帮了小吴，因为他累。 ",
    ["小周", "帮了", "小吴", "，因", "为", "他", "累。 "],
    5,
    [(2, 3, True), (0, 1, False)],
)


def xfile(folder: Path, *rows: str) -> Xwino:
    path = folder / "rows.tsv"
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return Xwino(path=str(path), dev_share=0.0, test_share=0.5)


def test_token_spans_become_characters_in_both_languages(tmp_path: Path) -> None:
    by_text = {example.text: example for example in everything(xwino.read(xfile(tmp_path, *ENGLISH, CHINESE))[0])}
    cracked = by_text['Ida\'s aunt said "it" when the jug hit the wall, as it cracked.']
    assert cracked.pronoun == (51, 53)  # not the first "it"
    assert (words(cracked), right(cracked)) == ([["the jug"], ["the wall"]], ["the wall"])
    chinese = by_text["小周帮了小吴，因为他累。"]
    assert (chinese.language, pronoun(chinese), right(chinese)) == ("zh", "他", ["小吴"])


def test_xwino_neighbours_with_the_same_candidates_are_minimal_pairs_in_one_split(tmp_path: Path) -> None:
    splits, _ = xwino.read(xfile(tmp_path, *ENGLISH, CHINESE))
    english = [example for example in everything(splits) if example.language == "en"]
    assert len({example.minimal_pair for example in english}) == 1
    assert pairs_in_one_split(splits)


def test_the_tail_of_because_is_no_pronoun_and_other_languages_are_left_out(tmp_path: Path) -> None:
    because = CHINESE.replace(json.dumps(["他", [5, 6], ["他"]]), json.dumps(["为", [4, 5], ["为"]]))
    splits, report = xwino.read(xfile(tmp_path, because, CHINESE.replace("zh\t", "ja\t")))
    assert not everything(splits)
    assert report.reasons == {
        "为 is marked, the end of 因为, in place of a pronoun": 1,
        "its language is none of en, zh": 1,
    }


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("zh\t", "", "rows.tsv, line 1: 6 cells; language, source"),
        (", true]", ", false]", "line 1, candidates: 0 of .* are right; one must be"),
        (
            json.dumps(["小周", [0, 1], ["小周"], False]),
            "[]",
            r"line 1, candidates: \[\] must be \[text, \[start, end\]",
        ),
        ("[5, 6]", "[5, 9]", r"line 1, pronoun: \[5, 9\] must be tokens from 0 to 7"),
        ("[5, 6]", "5", r"line 1, pronoun: .* must be \[text, \[start, end\], tokens\]"),
        ("小周帮", "小周，帮过", "line 1, tokens: '帮了' does not follow in"),
        ("\t[[", "\t[", "line 1, candidates: .* must be JSON"),
        ("[5, 6]", "[" * 100_000, "line 1, pronoun: .* must be JSON"),
        ("[5, 6]", "9" * 5000, "line 1, pronoun: .* must be JSON"),
    ],
)
def test_a_broken_xwino_row_is_named(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in CHINESE
    with pytest.raises(UserError, match=message):
        xwino.read(xfile(tmp_path, CHINESE.replace(old, new)))


@pytest.mark.parametrize("word", ["牠們", "祂們", "佢", "佢哋"])
def test_pronouns_of_traditional_and_cantonese_texts_are_pronouns_without_a_tag(word: str) -> None:
    assert word_form(word, (), "zh") == "pronoun"

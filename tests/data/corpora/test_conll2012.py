from __future__ import annotations

import gzip
import re
from pathlib import Path

import pytest
from readings import everything, pairs_in_one_split, pronoun, right, words

from anaphora.base.errors import UserError
from anaphora.data import store
from anaphora.data.contamination import evaluation_texts
from anaphora.data.corpora import conll2012
from anaphora.data.corpora.coreference import (
    EMPTY_NODE,
    FIRST_MENTION,
    NO_LAYER,
    NO_SPLIT,
    PLACEHOLDER,
    SAME_DOCUMENT,
    SHARED_HEAD_WORD,
    UNBALANCED,
)
from anaphora.settings.data import Conll2012

ENGLISH = (
    "Anna NNP (1|(3 | Bell NNP 1) | and CC - | Tom NNP (2)|3) | saw VBD - | the DT (4 | old JJ - | mill NN 4) "
    "| -LRB- -LRB- - | again RB - | -RRB- -RRB- - | /. . -",
    "She PRP (1) | liked VBD - | it PRP (4) | . . -",
)
CHINESE = (
    "安娜 NR (1) | 看见 VV - | IBM NR (2 | 的 DEG - | 老 JJ - | 板 NN 2) | 。 PU -",
    "她 PN (1) | 笑 VV - | 。 PU -",
)


def document(sentences: tuple[str, ...], name: str = "nw/mill/00/mill_0001", part: int = 0) -> str:
    """Return an invented document of "word tag brackets"; the second sentence has one more argument column."""
    rows = []
    for number, sentence in enumerate(sentences):
        for place, cells in enumerate(sentence.split(" | ")):
            word, tag, coreference = cells.split()
            predicates = "    *" * number
            rows.append(f"{name}   {part}   {place}  {word}  {tag}  *  -  -  -  -  *{predicates}   {coreference}")
        rows.append("")
    return "\n".join((f"#begin document ({name}); part {part:03d}", *rows, "#end document", ""))


def settings(path: Path, language: str = "en", test_share: float = 0.0) -> Conll2012:
    return Conll2012(path=str(path), language=language, dev_share=0.0, test_share=test_share)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "mill.v4_gold_conll"
    file.write_text(document(ENGLISH))
    return file


def test_pronouns_have_earlier_mentions_of_their_entity_as_antecedents_and_the_others_as_candidates(path: Path) -> None:
    splits, report = conll2012.read(settings(path))
    she, it = everything(splits)
    assert she.text == "Anna Bell and Tom saw the old mill ( again ) . She liked it ."
    assert (pronoun(she), words(she), right(she)) == ("She", [["Bell"], ["Tom"], ["mill"]], ["Bell"])
    assert (pronoun(it), words(it), right(it)) == ("it", [["Bell", "She"], ["Tom"], ["mill"]], ["mill"])
    assert she.factors["form"] == "pronoun" and she.factors["genre"] == "nw"
    assert report.rows == 6 and report.reasons[FIRST_MENTION] == 3


def test_chinese_words_are_joined_and_the_last_noun_is_the_head(tmp_path: Path) -> None:
    path = tmp_path / "mill_conll"
    path.write_text(document(CHINESE), encoding="utf-8")
    (she,) = everything(conll2012.read(settings(path, "zh"))[0])
    assert (she.text, she.language) == ("安娜看见IBM的老板。她笑。", "zh")
    assert (pronoun(she), words(she), right(she)) == ("她", [["安娜"], ["板"]], ["安娜"])
    with pytest.raises(UserError, match=r"data\.language \(en\): .*mill_conll is zh"):
        conll2012.read(settings(path))


@pytest.mark.parametrize(("tag", "form"), [("NN", "nominal"), ("NR", "proper"), ("NT", "nominal")])
@pytest.mark.parametrize("short", ["", "-SHORT"])
def test_a_chinese_abbreviation_is_a_head_as_the_whole_word_is(tag: str, form: str, short: str, tmp_path: Path) -> None:
    path = tmp_path / "mill_conll"
    first = f"安娜 NR (1) | 看见 VV - | 俄 {tag}{short} (2 | 等 ETC 2) | 。 PU -"
    path.write_text(document((first, f"这 DT (2 | 里 {tag}{short} 2) | 好 VA - | 。 PU -")), encoding="utf-8")
    (place,) = everything(conll2012.read(settings(path, "zh"))[0])
    assert (words(place), right(place), place.factors["form"]) == ([["安娜"], ["俄"]], ["俄"], form)


def test_parts_of_a_document_share_no_entity_and_one_split(tmp_path: Path) -> None:
    path = tmp_path / "all.conll"
    names = [f"nw/mill/00/mill_{number}" for number in range(6)]
    path.write_text("".join(document(ENGLISH, name, part) for name in names for part in (0, 1)))
    splits, _ = conll2012.read(settings(path, test_share=0.5))
    assert {split: len({one.group for one in examples}) for split, examples in splits.items()} == {
        "train": 3, "dev": 0, "test": 3,
    }  # fmt: skip
    assert pairs_in_one_split(splits)
    assert all(len(one.candidates) == 3 for one in everything(splits))


def test_folders_tell_the_official_splits_and_only_gold_files_of_the_language_are_read(tmp_path: Path) -> None:
    for split, language, kind in (
        *(("train", "english", "gold"), ("development", "english", "gold"), ("test", "english", "gold")),
        *(("train", "english", "auto"), ("train", "chinese", "gold"), ("conll-2012-extra", "english", "gold")),
    ):
        folder = tmp_path / split / "data" / language / "annotations"
        folder.mkdir(parents=True, exist_ok=True)
        name = f"nw/{split}/{language}_{kind}"
        with gzip.open(folder / f"mill.v4_{kind}_conll.gz", "wt") as file:
            file.write(document(ENGLISH, name))
    splits, report = conll2012.read(settings(tmp_path))
    assert {split: {one.group for one in examples} for split, examples in splits.items()} == {
        "train": {"conll2012/nw/train/english_gold"},
        "dev": {"conll2012/nw/development/english_gold"},
        "test": {"conll2012/nw/test/english_gold"},
    }
    assert (report.rows, report.reasons[NO_SPLIT]) == (4 * 6, 6)
    corpus = store.load(settings(tmp_path))
    assert all(corpus.examples(name) == splits[name] for name in splits)
    with pytest.raises(UserError, match=r"this folder has no _conll or \.conll file in chinese"):
        conll2012.read(settings(tmp_path / "test", "zh"))


@pytest.mark.parametrize(
    ("name", "split"),
    [
        ("test/data/english/annotations/nw/dev_09_c2e/00/dev_09_c2e_0007.v4_gold_conll", "test"),
        ("train_dev_test/dev.conll", "dev"),
        ("train-data/test.english.jsonlines.gz", "test"),
        ("conll-2012-test/cctv_0001.v4_gold_conll", "test"),
        ("en_gum-corefud-train.conllu", "train"),
        ("validation.jsonl", "dev"),
        ("en_val.conllu", "dev"),
        ("latest.conllu", None),
        ("my_dev_set.conll", None),
        ("ontogum_test2.conllu.gz", None),
    ],
)
def test_a_folder_or_part_called_like_a_split_comes_first_and_then_the_word_nearest_to_the_file(
    name: str, split: str | None
) -> None:
    assert conll2012.official_split(name) == split


@pytest.mark.parametrize("space", ["\u3000", "\u00a0", "\u2028"])
def test_a_word_may_hold_a_space_that_separates_no_columns(space: str, path: Path) -> None:
    written = document((*ENGLISH, "Bell~Court NNP (1) | saw VBD - | it~ PRP (1)")).replace("~", space)
    path.write_text(written, encoding="utf-8")
    *_, it = everything(conll2012.read(settings(path))[0])
    assert it.text.endswith(f"Bell{space}Court saw it{space}")


def test_a_lost_bracket_is_counted_and_spoils_no_other_sentence(path: Path) -> None:
    expected, report = conll2012.read(settings(path))
    path.write_text(path.read_text().replace("again  RB  *  -  -  -  -  *   -", "again  RB  *  -  -  -  -  *   (9"))
    splits, again = conll2012.read(settings(path))
    assert splits == expected
    assert again.reasons == {**report.reasons, UNBALANCED: 1}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("#begin document (nw", "#begin (nw", r"line 2: a word comes before '#begin document \(name\); part 000'"),
        ("; part 000", "", r"line 1: '#begin document .* must be '#begin document \(name\); part 000'"),
        ("#end document\n", "", r"'#end document' of conll2012/nw/mill/00/mill_0001/000 is missing"),
        ("#end document\n", "#begin document (x); part 1\n", r"line 20: a document begins before '#end document' of"),
        ("#end document\n", "#end document\n#end document\n", r"line 21: '#end document' without its"),
        ("0   3  Tom", "0   4  Tom", r"line 5, word number: '4' must be 3"),
        ("old  JJ  *  ", "old  JJ  ", r"line 8: 11 columns; CoNLL-2012 has 12 or more"),
        ("old  JJ  *  ", "old  JJ  *  * ", r"line 8: 13 columns; the sentence began with 12"),
        ("(2)|3)", "(2)|(x)", r"line 5, coreference: '\(2\)\|\(x\)' must be -, or made of \(12, 12\) and \(12\)"),
        ("(2)|3)", "(2)|3", r"line 5, coreference"),
    ],
)
def test_a_broken_line_is_named(path: Path, old: str, new: str, message: str) -> None:
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new, 1))
    with pytest.raises(UserError, match=message) as error:
        conll2012.read(settings(path))
    assert str(path) in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize("ending", ["\r\n", "\r"])
def test_every_line_end_is_the_same_corpus(path: Path, ending: str) -> None:
    expected = conll2012.read(settings(path))[0]
    path.write_bytes(b"\xef\xbb\xbf" + document(ENGLISH).replace("\n", ending).encode())
    assert conll2012.read(settings(path))[0] == expected


def without_tags(text: str, empty: str) -> str:
    """Return a file with an empty column of parts of speech."""
    return re.sub(r"(?m)^(nw\S*\s+\d+\s+\d+\s+\S+\s+)\S+", rf"\g<1>{empty}", text)


@pytest.mark.parametrize("empty", ["-", "_", "*", "XX", "x"])
def test_without_parts_of_speech_pronouns_are_known_by_the_word_and_nothing_else_is_claimed(
    path: Path, empty: str
) -> None:
    path.write_text(document((*ENGLISH, "Bell NNP (1) | saw VBD - | . . -")))
    tagged = everything(conll2012.read(settings(path))[0])
    path.write_text(without_tags(path.read_text(), empty))
    untagged = everything(conll2012.read(settings(path))[0])
    assert [one.factors["form"] for one in tagged] == ["pronoun", "pronoun", "proper"]
    assert [one.factors["form"] for one in untagged] == ["pronoun", "pronoun", "unknown"]
    assert [(one.pronoun, one.candidates) for one in tagged] == [(one.pronoun, one.candidates) for one in untagged]


@pytest.mark.parametrize("word", ["this DT", "that DT", "who WP", "whose WP$", "which WDT", "all DT"])
def test_pronouns_with_the_tag_of_a_determiner_or_question_word_are_pronouns(word: str, path: Path) -> None:
    path.write_text(document((*ENGLISH, f"Bell NNP (1) | saw VBD - | {word} (1)")))
    forms = [one.factors["form"] for one in everything(conll2012.read(settings(path))[0])]
    assert forms[-1] == ("nominal" if word == "all DT" else "pronoun")


def test_where_some_words_have_tags_the_others_alone_are_unknown(path: Path) -> None:
    path.write_text(document((*ENGLISH, "Bell NNP (1) | saw VBD - | Tom - (2) | . . -", "he - (2) | ran VBD -")))
    forms = [one.factors["form"] for one in everything(conll2012.read(settings(path))[0])]
    assert forms == ["pronoun", "pronoun", "proper", "unknown", "pronoun"]


def test_tabs_separate_columns_and_the_last_cell_may_be_empty(path: Path) -> None:
    expected = conll2012.read(settings(path))
    lines = [
        "\t".join("" if cell == "-" else cell for cell in line.split()) if line.startswith("nw") else line
        for line in path.read_text().split("\n")
    ]
    assert any(line.endswith("\t") for line in lines)
    path.write_text("\n".join(lines))
    assert conll2012.read(settings(path)) == expected


def test_a_title_with_gold_or_test_in_it_selects_no_file(tmp_path: Path) -> None:
    for name in ("the_gold_mill.conll", "a_test_of_love_brat.conll", "chinese_tales.conll"):
        (tmp_path / name).write_text(document(ENGLISH, f"nw/{name}"))
    splits, report = conll2012.read(settings(tmp_path))
    assert {one.group.rpartition("/")[2] for one in everything(splits)} == {
        "the_gold_mill.conll", "a_test_of_love_brat.conll", "chinese_tales.conll",
    }  # fmt: skip
    assert NO_SPLIT not in report.reasons


def test_a_document_without_words_or_with_some_is_dropped_and_counted(path: Path) -> None:
    expected, report = conll2012.read(settings(path))
    skeleton = re.sub(r"(?m)^(nw\S*\s+\d+\s+\d+\s+)\S+", r"\1[WORD]", document(ENGLISH, "nw/skeleton"))
    part = document(ENGLISH, "nw/part").replace("liked", "[WORD]")
    path.write_text(document(ENGLISH) + skeleton + part)
    splits, again = conll2012.read(settings(path))
    assert splits == expected
    assert again.reasons == {**report.reasons, SHARED_HEAD_WORD: 3, PLACEHOLDER: 12 - 2}
    with pytest.raises(UserError, match=r"line 22, word: \[WORD\] takes the place of a word"):
        list(evaluation_texts(path))


def test_a_document_without_a_single_word_changes_nothing(path: Path) -> None:
    expected, report = conll2012.read(settings(path))
    path.write_text(document(ENGLISH) + document((), "nw/empty"))
    splits, again = conll2012.read(settings(path))
    assert splits == expected
    assert again.reasons == {**report.reasons, NO_LAYER: 1}


def test_documents_without_coreference_and_documents_that_stand_twice_are_counted(path: Path) -> None:
    expected, report = conll2012.read(settings(path))
    bare = re.sub(r"(?m)^(nw.*\s)\S+$", r"\1-", document(ENGLISH, "nw/bare"))
    path.write_text(document(ENGLISH) + bare + document(ENGLISH))
    splits, again = conll2012.read(settings(path))
    assert splits == expected
    assert again.reasons == {**report.reasons, NO_LAYER: 1, SAME_DOCUMENT: 6}
    assert again.rows == len(everything(splits)) + len(again.dropped)


@pytest.mark.parametrize(
    ("trace", "tag"), [("*pro*", "NN"), ("*PRO*", "-NONE-"), ("*T*-1", "-"), ("*-2", "-NONE-"), ("0", "-NONE-")]
)
def test_traces_are_not_written_and_mentions_of_them_alone_are_dropped(path: Path, trace: str, tag: str) -> None:
    expected, report = conll2012.read(settings(path))
    first, second = ENGLISH
    second = f"{trace} {tag} (1) | {second.replace('it PRP (4)', f'{trace} {tag} (4 | it PRP 4)')}"
    path.write_text(document((first, second)))
    splits, again = conll2012.read(settings(path))
    assert splits == expected
    assert again.reasons == {**report.reasons, EMPTY_NODE: 1}
    assert trace not in list(evaluation_texts(path))[1].split()


def test_a_zero_and_an_asterisk_that_are_written_stay(path: Path) -> None:
    path.write_text(document((*ENGLISH, "0 CD - | * SYM - | she PRP (1)")))
    assert everything(conll2012.read(settings(path))[0])[-1].text.endswith("0 * she")


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ((0, 1, 2, 3, 5, 4, *range(6, 13)), r"line 2, part of speech: '\(S\*' is a part of a parse"),
        ((0, 1, 2, 4, 3, *range(5, 13)), r"line 1, word: all words .* are parts of speech, such as 'NNP'"),
        ((0, 1, 2, 3, *range(5, 13)), r"line 2, part of speech: '\(S\*' is a part of a parse"),
        ((0, 2, 1, *range(3, 13)), r"line 3, word number: '0' must be 1"),
        (tuple(range(12)), r"line 2, coreference: '\(V\*' must be -, or made of"),
    ],
)
def test_columns_in_another_order_are_named(path: Path, columns: tuple[int, ...], message: str) -> None:
    rows = [f"nw 0 {n} {word} {tag} {'(S*' if not n else '*'} - - - - * (V* (1)" for n, (word, tag) in enumerate(
        (("Anna", "NNP"), ("saw", "VBD"), ("her", "PRP")))]  # fmt: skip
    moved = [" ".join(row.split()[column] for column in columns) for row in rows]
    path.write_text("\n".join(["#begin document (nw); part 000", *moved, "", "#end document", ""]))
    with pytest.raises(UserError, match=message):
        conll2012.read(settings(path))


def test_the_language_is_checked() -> None:
    with pytest.raises(UserError, match=r"data\.language \('ar'\) must be one of en, zh"):
        Conll2012(path=".", language="ar")

from __future__ import annotations

import re
from pathlib import Path

import pytest
from readings import everything, pronoun, right, words

from anaphora.base.errors import UserError
from anaphora.data.corpora import corefud
from anaphora.data.corpora.conllu import DISCONTINUOUS, EMPTY_NODE
from anaphora.data.corpora.coreference import FIRST_MENTION, UNBALANCED
from anaphora.settings.data import CorefUd

# id, word, part of speech, head, MISC
ENGLISH = """\
1 The DET 2 Entity=(e1-place-2-
2 mill NOUN 5 _
3 of ADP 4 _
4 Anna PROPN 2 Entity=(e2-person-1-)e1)
5 burned VERB 0 SpaceAfter=No
6 . PUNCT 5 _

0.1 _ PRON _ Entity=(e2-person-1-)
1 Rebuilt VERB 0 _
2 by ADP 3 _
3 her PRON 1 Entity=(e2-person-1-)
4 , PUNCT 1 Entity=(e3[1/2]-abstract-1-)
5 it PRON 6 Bridge=e1<e2|Entity=(e1-place-1-)
6 stood VERB 1 Entity=(e3[2/2]-abstract-1-)
"""
CHINESE = """\
1 安娜 PROPN 2 SpaceAfter=No|Entity=(e1-person-1-)
2 笑 VERB 0 SpaceAfter=No
3 。 PUNCT 2 SpaceAfter=No

1 她 PRON 2 SpaceAfter=No|Entity=(e1-person-1-)
2 来 VERB 0 SpaceAfter=No
"""


def written(
    sentences: str = ENGLISH, header: str = "# newdoc id = mill\n# global.Entity = eid-etype-head-other\n"
) -> str:
    lines = []
    for line in sentences.splitlines():
        if line:
            number, word, kind, head, misc = line.split()
            line = "\t".join((number, word, "_", kind, "_", "_", head, "_", "_", misc))
        lines.append(line)
    return header + "\n".join(lines) + "\n\n"


def settings(path: Path, language: str = "en") -> CorefUd:
    return CorefUd(path=str(path), language=language, dev_share=0.0, test_share=0.0)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "en_mill-corefud-train.conllu"
    file.write_text(written(), encoding="utf-8")
    return file


def test_pronouns_have_earlier_mentions_of_their_entity_and_empty_nodes_are_dropped_and_counted(path: Path) -> None:
    splits, report = corefud.read(settings(path))
    her, it = everything(splits)
    assert her.text == "The mill of Anna burned. Rebuilt by her , it stood"
    assert (pronoun(her), words(her), right(her)) == ("her", [["mill"], ["Anna"]], ["Anna"])
    assert (pronoun(it), words(it), right(it)) == ("it", [["mill"], ["Anna", "her"]], ["mill"])
    assert (her.group, her.factors["form"]) == ("corefud/mill", "pronoun")
    assert (report.rows, report.reasons) == (6, {FIRST_MENTION: 2, EMPTY_NODE: 1, DISCONTINUOUS: 1})


def test_a_mention_that_begins_with_an_empty_node_keeps_its_written_words(path: Path) -> None:
    path.write_text(path.read_text().replace("(e2-person-1-)\n1\tRebuilt", "(e9-abstract-1-\n1\tRebuilt"))
    path.write_text(
        path.read_text().replace("2\tby\t_\tADP\t_\t_\t3\t_\t_\t_", "2\tby\t_\tADP\t_\t_\t3\t_\t_\tEntity=e9)")
    )
    _, report = corefud.read(settings(path))
    assert report.reasons == {FIRST_MENTION: 3, DISCONTINUOUS: 1}


def test_the_header_tells_where_the_entity_stands_in_a_bracket(path: Path) -> None:
    expected = everything(corefud.read(settings(path))[0])
    text = path.read_text().replace("eid-etype-head-other", "etype-GRP")
    text = re.sub(r"\((e\d(?:\[\d/\d\])?)-(\w+)-\d-", r"(\2-\1", text)
    path.write_text(text)
    assert everything(corefud.read(settings(path))[0]) == expected
    path.write_text(text.replace("etype-GRP", "etype"))
    with pytest.raises(UserError, match=r"line 2, global\.Entity: 'etype' names no eid"):
        corefud.read(settings(path))


def test_chinese_is_read_as_chinese_alone(tmp_path: Path) -> None:
    path = tmp_path / "zh.conllu"
    path.write_text(written(CHINESE, "# newdoc\n"), encoding="utf-8")
    (she,) = everything(corefud.read(settings(path, "zh"))[0])
    assert (she.text, she.language, she.group) == ("安娜笑。她来", "zh", "corefud/zh_1")
    with pytest.raises(UserError, match=r"data\.language \(en\): .*zh\.conllu is zh"):
        corefud.read(settings(path))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("# newdoc id = mill\n", "", "line 2: a word comes before the first '# newdoc"),
        ("2\tmill\t", "3\tmill\t", "line 4, ID: '3' must be 2"),
        ("2\tmill\t", "2\t\t", "line 4, FORM: '' is blank"),
        ("DET\t_\t_\t2", "DET\t_\t_\t²", "line 3, HEAD: '²' must be a whole number"),
        ("DET\t_\t_\t2", "DET\t_\t2", "line 3: 9 cells; CoNLL-U has 10"),
        ("0.1\t", "0.x\t", "line 10, ID: '0.x' must be 1"),
    ],
)
def test_a_broken_line_is_named(path: Path, old: str, new: str, message: str) -> None:
    assert old in path.read_text(encoding="utf-8")
    path.write_text(path.read_text(encoding="utf-8").replace(old, new, 1), encoding="utf-8")
    with pytest.raises(UserError, match=message) as error:
        corefud.read(settings(path))
    assert str(path) in str(error.value) and "\n" not in str(error.value)


def test_a_lost_bracket_is_counted(path: Path) -> None:
    path.write_text(path.read_text().replace(")e1)", ")"))
    _, report = corefud.read(settings(path))
    assert report.reasons == {FIRST_MENTION: 2, UNBALANCED: 1, EMPTY_NODE: 1, DISCONTINUOUS: 1}


@pytest.mark.parametrize("ending", ["\r\n", "\r"])
def test_every_line_end_is_the_same_corpus(path: Path, ending: str) -> None:
    expected = corefud.read(settings(path))[0]
    path.write_bytes(b"\xef\xbb\xbf" + written().replace("\n", ending).encode())
    assert corefud.read(settings(path))[0] == expected

from __future__ import annotations

import re
from pathlib import Path

import pytest
from readings import everything, pronoun, right, words

from anaphora.base.errors import UserError
from anaphora.data.corpora import corefud
from anaphora.data.corpora.conllu import DISCONTINUOUS
from anaphora.data.corpora.coreference import (
    EMPTY_NODE,
    FIRST_MENTION,
    NO_LAYER,
    PLACEHOLDER,
    PLURAL_ANTECEDENT,
    UNBALANCED,
    extents_of,
)
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


def test_a_discontinuous_mention_without_its_last_part_is_counted_too(path: Path) -> None:
    path.write_text(path.read_text().replace("Entity=(e3[2/2]-abstract-1-)", "_"))
    _, report = corefud.read(settings(path))
    assert (report.rows, report.reasons[DISCONTINUOUS]) == (6, 1)


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


HEADER = "# global.Entity = eid-etype-head-other\n"


def in_form(text: str, opening: str, closing: str) -> str:
    """Return the text with brackets in another format, without the line that declares the format."""
    text = text.replace(HEADER, "")
    for number in range(10):
        text = re.sub(rf"\(e{number}(\[[0-9/]+\])?-(\w+)-(\d)-", rf"({opening.replace('#', str(number))}", text)
        text = re.sub(rf"(?<![(\w])e{number}\)", f"{closing.replace('#', str(number))})", text)
    return text


@pytest.mark.parametrize(
    ("opening", "closing"),
    [
        (r"\2-#\1", "place-#"),  # GUM 5 to 7: brackets that close repeat the type
        (r"\2-#\1-Some-Page", "place-#-Some-Page"),  # GUM 7.1: and the page of Wikipedia
        (r"\2-#\1-new-\3-coref", "#"),  # GUM 8
        (r"#\1-\2-new-cf1-\3-coref", "#"),
        (r"x#\1-\2-\3-", "x#"),
        (r"#\1", "#"),
    ],
)
def test_an_undeclared_form_is_read_where_the_brackets_show_the_entity(path: Path, opening: str, closing: str) -> None:
    expected, report = corefud.read(settings(path))
    path.write_text(in_form(path.read_text(), opening, closing))
    assert "global.Entity" not in path.read_text()
    again, its_report = corefud.read(settings(path))
    assert (again, its_report.reasons) == (expected, report.reasons)


@pytest.mark.parametrize(
    "brackets",
    [
        ["(a-b)", "(a-c)"],  # no bracket closes alone, and neither part is a type
        ["(x-1-1", "1)"],  # two parts fit
        ["(x-y", "z)"],  # none does
        ["(person-place)", "(place-person)"],
    ],
)
def test_an_undeclared_form_that_the_brackets_do_not_show_is_refused(path: Path, brackets: list[str]) -> None:
    rows = [f"{number} word NOUN {number - 1} Entity={each}" for number, each in enumerate(brackets, start=1)]
    path.write_text(written("\n".join(rows), "# newdoc id = mill\n"))
    with pytest.raises(
        UserError, match=r"line 2, Entity: no line '# global\.Entity = \.\.\.' says which part of"
    ) as error:
        corefud.read(settings(path))
    assert "# global.Entity = eid-etype-head-other" in str(error.value)


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ("# global.Entity = etype-eid-head-other\n", r"line 2, global\.Entity: .* part 2 .* it is part 1"),
        ("# global.Entity = head-etype-eid\n", r"line 3, Entity: .* has 4 parts, not those .* head-etype-eid"),
        ("# global.Entity = a-b-c-d-eid\n", r"line 3, Entity: .* has 4 parts, not those .* a-b-c-d-eid"),
        ("# global.Entity = etype\n", r"line 2, global\.Entity: 'etype' names no eid"),
        ("# global.Entity =\n", r"line 2, global\.Entity: '' names no eid"),
    ],
)
def test_a_declaration_that_does_not_fit_the_brackets_is_refused(path: Path, header: str, message: str) -> None:
    path.write_text(path.read_text().replace(HEADER, header))
    with pytest.raises(UserError, match=message):
        corefud.read(settings(path))


def test_the_old_form_below_a_declaration_of_the_new_one_is_refused(path: Path) -> None:
    old = in_form(path.read_text(), r"\2-#\1", "place-#")
    path.write_text(old.replace("id = mill\n", f"id = mill\n{HEADER}"))
    with pytest.raises(
        UserError, match=r"line 2, global\.Entity: .* part 1 .* it is part 2 \(as in \(place-1, line 3\)"
    ):
        corefud.read(settings(path))


@pytest.mark.parametrize(
    "header", ["#global.Entity=EID-etype-head-other\n", "#  global.entity  =  eid-x-head-other \n"]
)
def test_a_declaration_may_be_written_with_other_blanks_and_case(path: Path, header: str) -> None:
    expected = corefud.read(settings(path))
    path.write_text(path.read_text().replace(HEADER, header))
    assert corefud.read(settings(path)) == expected


def test_every_document_may_declare_its_own_parts_but_not_in_its_middle(path: Path) -> None:
    one = path.read_text()
    other = in_form(one.replace("mill", "well"), r"\2-#\1-\3-x", "#")
    declared = other.replace("id = well\n", "id = well\n# global.Entity = etype-GRP-minspan-link\n")
    path.write_text(one + declared)
    splits, _ = corefud.read(settings(path))
    first, second = ([item for item in everything(splits) if item.group.endswith(name)] for name in ("mill", "well"))
    assert [item.candidates for item in first] == [item.candidates for item in second]
    path.write_text(one.replace("\n\n0.1", "\n\n# global.Entity = etype-eid\n0.1"))
    with pytest.raises(UserError, match=r"line 10, global\.Entity: it is in the middle of mill"):
        corefud.read(settings(path))


@pytest.mark.parametrize("begin", ["#newdoc id = well", "# newdoc id=well", "#  newdoc id  =  well", "# newdoc"])
def test_every_way_to_begin_a_document_begins_one(path: Path, begin: str) -> None:
    _, report = corefud.read(settings(path))
    path.write_text(path.read_text() + path.read_text().replace("# newdoc id = mill", begin))
    splits, both = corefud.read(settings(path))
    assert both.rows == 2 * report.rows
    assert {one.group for one in everything(splits)} == {
        "corefud/mill", "corefud/well" if "well" in begin else f"corefud/{path.stem}_2",
    }  # fmt: skip


WOMAN = """\
1 The DET 0 Entity=(e1-person-3-
2 old ADJ 0 _
3 woman NOUN 0 Entity=e1)
4 slept VERB 0 _

1 She PRON 0 Entity=(e1-person-1-)
2 woke VERB 0 _
"""


def empty_columns(text: str, heads: str, tags: str) -> str:
    """Replace the columns of heads and parts of speech by `heads` and `tags`."""
    return re.sub(r"(?m)^(\d+\t\w+\t_\t)\w+(\t_\t_\t)\d+", rf"\g<1>{tags}\g<2>{heads}", text)


@pytest.mark.parametrize("heads", ["0", "_", ""])
@pytest.mark.parametrize("given", ["3", ""])
def test_without_a_parse_the_head_is_that_of_the_bracket_else_that_of_a_rule(
    path: Path, heads: str, given: str
) -> None:
    path.write_text(empty_columns(written(WOMAN.replace("person-3", f"person-{given}")), heads, "_"))
    (she,) = everything(corefud.read(settings(path))[0])
    assert (words(she), she.factors["form"]) == ([["woman"]], "pronoun")
    assert she.text[slice(*extents_of(she)[1][0][0])] == "The old woman"


def test_the_head_of_the_bracket_comes_before_the_parse_and_counts_empty_nodes(path: Path) -> None:
    parsed = WOMAN.replace("DET 0", "DET 2").replace("ADJ 0", "ADJ 4").replace("NOUN 0", "NOUN 2")
    path.write_text(written(parsed))
    assert words(everything(corefud.read(settings(path))[0])[0]) == [["woman"]]
    path.write_text(written(parsed.replace("3 woman", "2.1 _ _ _ _\n3 woman").replace("person-3", "person-4")))
    assert words(everything(corefud.read(settings(path))[0])[0]) == [["woman"]]
    path.write_text(written(parsed.replace("person-3", "person-")))
    assert words(everything(corefud.read(settings(path))[0])[0]) == [["old"]]


@pytest.mark.parametrize("head", ["4", "0", "x", "99999999999"])
def test_a_head_that_is_no_word_of_its_mention_is_named(path: Path, head: str) -> None:
    path.write_text(written(WOMAN.replace("person-3", f"person-{head}")))
    with pytest.raises(UserError, match=rf"line 3, Entity: .*{head}.* must be"):
        corefud.read(settings(path))


def test_the_words_that_matter_most_give_the_head_only_without_a_parse(path: Path) -> None:
    text = written(WOMAN.replace("person-3", "person-2,3")).replace("eid-etype-head-other", "GRP-etype-minspan-link")
    path.write_text(text)
    assert words(everything(corefud.read(settings(path))[0])[0]) == [["old"]]
    path.write_text(text.replace("3\twoman\t_\tNOUN\t_\t_\t0", "3\twoman\t_\tNOUN\t_\t_\t4"))
    assert words(everything(corefud.read(settings(path))[0])[0]) == [["The"]]


@pytest.mark.parametrize(
    ("tags", "forms"),
    [
        (("_", "_", "_"), ["unknown", "pronoun", "unknown"]),
        (("NOUN", "_", "PROPN"), ["nominal", "pronoun", "proper"]),
        (("_", "PRON", "_"), ["unknown", "pronoun", "unknown"]),
        (("-", "*", "XX"), ["unknown", "pronoun", "unknown"]),
    ],
)
def test_what_has_no_part_of_speech_is_unknown_unless_it_is_a_pronoun(
    path: Path, tags: tuple[str, ...], forms: list[str]
) -> None:
    rows = [f"1 Mill {tags[0]} 0 Entity=(e1-place-1-)", f"1 mill {tags[0]} 0 Entity=(e1-place-1-)"]
    rows += [f"1 it {tags[1]} 0 Entity=(e1-place-1-)", f"1 Mill {tags[2]} 0 Entity=(e1-place-1-)"]
    path.write_text(written("\n\n".join(rows)))
    assert [one.factors["form"] for one in everything(corefud.read(settings(path))[0])] == forms


@pytest.mark.parametrize("attribute", ["SplitAnte=e1<e3,e2<e3", "Split=e1<e3,e2<e3"])
def test_a_plural_antecedent_is_the_reason_by_its_name(path: Path, attribute: str) -> None:
    rows = (
        "1 Anna PROPN 0 Entity=(e1-person-1-)", "2 met VERB 1 _", "3 Berta PROPN 1 Entity=(e2-person-1-)", "",
        f"1 They PRON 0 Entity=(e3-person-1-)|{attribute}", "2 slept VERB 1 _", "3 they PRON 1 Entity=(e3-person-1-)",
    )  # fmt: skip
    path.write_text(written("\n".join(rows)))
    splits, report = corefud.read(settings(path))
    assert [right(one) for one in everything(splits)] == [["They"]]
    assert report.reasons == {FIRST_MENTION: 2, PLURAL_ANTECEDENT: 1}
    path.write_text(
        path.read_text().replace(f"|{attribute}", "").replace("(e3-person-1-)", "(e3-person-1-acc:aggr)", 1)
    )
    assert corefud.read(settings(path))[1].reasons == report.reasons


def test_documents_without_brackets_are_counted(path: Path) -> None:
    expected, report = corefud.read(settings(path))
    bare = re.sub(r"Entity=[^|\n]*", "_", written()).replace("mill", "bare")
    path.write_text(written() + bare)
    splits, again = corefud.read(settings(path))
    assert (splits, again.reasons) == (expected, {**report.reasons, NO_LAYER: 1})


def test_documents_whose_words_are_left_out_are_dropped_and_counted(path: Path) -> None:
    expected, _ = corefud.read(settings(path))
    blanked = re.sub(r"(?m)^([\d.]+\t)[^\t]+", r"\1_", written()).replace("mill", "blanked")
    path.write_text(written() + blanked)
    splits, again = corefud.read(settings(path))
    assert splits == expected
    assert again.reasons == {FIRST_MENTION: 2, EMPTY_NODE: 2, DISCONTINUOUS: 2, PLACEHOLDER: 4}
    path.write_text(written() + written().replace("id = mill", "id = part").replace("\tburned\t", "\t_\t"))
    assert corefud.read(settings(path))[1].reasons == {
        FIRST_MENTION: 2, EMPTY_NODE: 2, DISCONTINUOUS: 2, PLACEHOLDER: 4,
    }  # fmt: skip


def test_an_underscore_that_is_written_stays(path: Path) -> None:
    path.write_text(written().replace("6\t.\t", "6\t_\t"))
    assert everything(corefud.read(settings(path))[0])[0].text.startswith("The mill of Anna burned_ ")


def test_a_trace_with_a_number_of_its_own_is_an_empty_node(path: Path) -> None:
    expected, report = corefud.read(settings(path))
    text = path.read_text().replace("0.1\t_\t_\tPRON\t_\t_\t_", "1\t*pro*\t_\tPRON\t_\t_\t2")
    sentences = text.partition("1\t*pro*")
    renumbered = re.sub(
        r"(?m)^(\d)\t(.*?)\t(\d)(?=\t_\t_\t[^\t]*$)",
        lambda row: f"{int(row[1]) + 1}\t{row[2]}\t{int(row[3]) + (row[3] != '0')}",
        sentences[2].partition("\n")[2],
    )
    path.write_text(sentences[0] + "1\t*pro*" + sentences[2].partition("\n")[0] + "\n" + renumbered)
    again, its_report = corefud.read(settings(path))
    assert (again, its_report.reasons) == (expected, report.reasons)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("Entity=(e1-place-2-", "Entity=e1", "line 3, Entity: 'e1' must be made of"),
        ("Entity=(e1-place-2-", "Entity=((e1-place-2-", "line 3, Entity: .* must be made of"),
        ("Entity=(e1-place-2-", "Entity=", "line 3, Entity: '' must be made of"),
        (
            "1\tThe",
            "1-2\tThemill\t_\t_\t_\t_\t_\t_\t_\tEntity=(e7-x-1-)\n1\tThe",
            "line 3, Entity: it must be on a word",
        ),
        ("1\tThe", "2-3\tx\t_\t_\t_\t_\t_\t_\t_\t_\n1\tThe", "line 3, ID: '2-3' must begin with 1"),
        ("1\tThe", "1-9\tx\t_\t_\t_\t_\t_\t_\t_\t_\n1\tThe", "the sentence ends before word 9"),
        ("DET\t_\t_\t2", "DET\t_\t_\t7", "line 3, HEAD: 7 must be 0 or a word of the sentence, 1 to 6"),
        (
            "# newdoc",
            "# global.columns = ID FORM HEAD MISC\n# newdoc",
            "line 1, global.columns: 'ID FORM HEAD MISC' must be",
        ),
    ],
)
def test_what_the_format_does_not_allow_is_named(path: Path, old: str, new: str, message: str) -> None:
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new, 1))
    with pytest.raises(UserError, match=message):
        corefud.read(settings(path))


@pytest.mark.parametrize(
    ("text", "rows", "seen"),
    [
        ("Anna left Bob.", ["Anna", "left Bob|SpaceAfter=No", "."], None),  # a word may hold a blank
        ("Anna left.", ["Anna", "left|SpaceAfter=No", "."], None),
        ("Anna  left\u00a0.", ["Anna", "left", "."], None),
        ("Zo\u00e9 left", ["Zoe\u0301", "left"], None),  # the same letters in another Unicode form
        ("He can't", ["He", "2-3 can't", "ca", "n't"], None),
        ("He left", ["He", "*T*-1", "left"], None),
        ("He *T*-1 left", ["He", "*T*-1", "left"], None),
        ("Anna met Bob and Tom _", ["_", "_", "_", "_", "_", "_"], None),  # words left out are reported as such
        ("Anna left.", ["Anna", "left", "."], r"'Anna left\.', but the words of the sentence read 'Anna left \.'"),
        ("Anna left", ["Bob", "left"], "'Anna left', but the words of the sentence read 'Bob left'"),
        ("Anna left", ["Anna"], "'Anna left', but the words of the sentence read 'Anna'"),
        ("He wanna", ["He", "2-3 wanna", "want", "to"], "'He wanna', but the words of the sentence read 'He wantto'"),
    ],
)
def test_the_text_above_a_sentence_is_that_of_its_words(
    text: str, rows: list[str], seen: str | None, tmp_path: Path
) -> None:
    lines, number = [], 0
    for row in rows:
        form, _, misc = row.partition("|")
        identity, _, whole = form.partition(" ") if form[0].isdigit() else ("", "", form)
        number += not identity
        lines.append(f"{identity or number}\t{whole}\t_\tNOUN\t_\t_\t0\t_\t_\t{misc or '_'}")
    path = tmp_path / "a.conllu"
    path.write_text(f"# newdoc id = d\n# sent_id = 1\n# text = {text}\n" + "\n".join(lines) + "\n\n", encoding="utf-8")
    if seen is None:
        assert corefud.read(CorefUd(path=str(path)))
    else:
        with pytest.raises(UserError, match=rf"^{path}, line 3, text: {seen}; both must be the same"):
            corefud.read(CorefUd(path=str(path)))


@pytest.mark.parametrize(("text", "without_blank"), [("In 2010 Anna left.", "left"), ("In 2010 Anna left 0.", "0")])
def test_a_trace_is_left_out_of_the_text_as_a_word_and_not_inside_one(
    text: str, without_blank: str, tmp_path: Path
) -> None:
    words = [("In", "IN"), ("2010", "CD"), ("Anna", "NNP"), ("left", "VBD"), ("0", "-NONE-"), (".", ".")]
    lines = [
        f"{number}\t{form}\t_\tX\t{tag}\t_\t0\t_\t_\t{'SpaceAfter=No' if form == without_blank else '_'}"
        for number, (form, tag) in enumerate(words, start=1)
    ]
    path = tmp_path / "a.conllu"
    path.write_text(f"# newdoc id = d\n# sent_id = 1\n# text = {text}\n" + "\n".join(lines) + "\n\n", encoding="utf-8")
    assert corefud.read(CorefUd(path=str(path)))

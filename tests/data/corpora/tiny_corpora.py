"""Tiny valid copies of all corpora in their original formats, for tests that damage them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anaphora.settings import data

_SHARES: dict[str, Any] = {"dev_share": 0.0, "test_share": 0.0}


@dataclass(frozen=True)
class Tiny:
    """Corpus with its files by name, and the settings that read their folder.

    Attributes:
        files: content of each file.
        settings: function from a folder to the settings.
        separator: separator of the columns; "" without columns.
    """

    files: Mapping[str, str]
    settings: Callable[[Path], data.Data]
    separator: str = ""

    def write(self, folder: Path) -> None:
        for name, content in self.files.items():
            (folder / name).write_bytes(content.encode("utf-8"))


def _rows(*cells: tuple[object, ...], separator: str = "\t") -> str:
    return "".join(separator.join(map(str, row)) + "\n" for row in cells)


def _json_lines(*rows: object) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def _conllu(name: str, words: str) -> str:
    """Return a document from words written as "word tag head brackets", with "/" between sentences."""
    lines = [f"# newdoc id = {name}", "# global.Entity = eid-etype-head-other"]
    for sentence in words.split(" / "):
        lines.append(f"# text = {' '.join(word.partition('~')[0] for word in sentence.split())}")
        for number, word in enumerate(sentence.split(), start=1):
            form, tag, head, brackets = word.split("~")
            misc = f"Entity={brackets}" if brackets else "_"
            lines.append(f"{number}\t{form}\t{form.lower()}\t{tag}\t_\t_\t{head}\tdep\t_\t{misc}")
        lines.append("")
    return "\n".join([*lines, ""])


_UD_FIRST = (
    "Anna~PROPN~2~(e1-person-1-) saw~VERB~0~ the~DET~5~(e2-place-3- old~ADJ~5~ mill~NOUN~2~e2) / "
    "She~PRON~2~(e1-person-1-) liked~VERB~0~ it~PRON~2~(e2-place-1-) because~SCONJ~5~ Tom~PROPN~2~(e3-person-1-)"
)
_UD_SECOND = (
    "A~DET~2~(e4-person-2- guest~NOUN~3~e4) met~VERB~0~ Berta~PROPN~3~(e5-person-1-) / "
    "He~PRON~2~(e4-person-1-) greeted~VERB~0~ her~PRON~2~(e5-person-1-)"
)


def _conll(name: str, words: str) -> str:
    """Return a document part from words written as "word tag bracket", with "/" between sentences."""
    lines = [f"#begin document ({name}); part 000"]
    for sentence in words.split(" / "):
        for number, word in enumerate(sentence.split()):
            form, tag, brackets = word.split("~")
            parse = "(S*" if number == 0 else "*"
            lines.append(f"{name} 0 {number} {form} {tag} {parse} - - - - * {brackets or '-'}")
        lines.append("")
    return "\n".join([*lines, "#end document", ""])


_ON_FIRST = "Anna~NNP~(1) saw~VBD~ the~DT~(2 old~JJ~ mill~NN~2) / She~PRP~(1) liked~VBD~ it~PRP~(2)"
_ON_SECOND = "A~DT~(1 guest~NN~1) met~VBD~ Berta~NNP~(2) / He~PRP~(1) greeted~VBD~ her~PRP~(2)"

_MENTIONS = (
    ("T0", 0, 0, 0, "Anna", "PROP"), ("T1", 0, 2, 3, "the mill", "NOM"), ("T2", 1, 0, 0, "She", "PRON"),
    ("T3", 1, 2, 2, "it", "PRON"), ("T4", 1, 4, 4, "Tom", "PROP"), ("T5", 2, 0, 0, "He", "PRON"),
)  # fmt: skip
_CHAINS = (("T0", "anna-0"), ("T1", "mill-1"), ("T2", "anna-0"), ("T3", "mill-1"), ("T4", "tom-2"), ("T5", "tom-2"))
_GAP_HEADER = ("ID", "Text", "Pronoun", "Pronoun-offset", "A", "A-offset", "A-coref", "B", "B-offset", "B-coref", "URL")
_GAP_TEXT = "Then Anna met Berta, for she was free."
_PDP = "Ann told Bea that [MASK] {}.\n[MASK]\nAnn, Bea\n{}\n\n"
_CLUE_TEXT = "小周和小吴来了，他唱歌。"


def _claim(words: str, label: str) -> dict[str, Any]:
    target = {"span1_index": _CLUE_TEXT.index(words), "span1_text": words, "span2_index": 8, "span2_text": "他"}
    return {"target": target, "text": _CLUE_TEXT, "label": label}


def _xwino(verb: str, right: int) -> tuple[object, ...]:
    tokens = f"Ann told Bea that she {verb} .".split()
    sentence = f"Ann told Bea that she {verb}."
    candidates = [
        [name, [at, at + 1], [name], number == right] for number, (name, at) in enumerate((("Ann", 0), ("Bea", 2)))
    ]
    return ("en", "x", "x", sentence, json.dumps(tokens), json.dumps(["she", [4, 5], ["she"]]), json.dumps(candidates))


def _own(text: str, pronoun: int, right: int) -> dict[str, Any]:
    spans = {"pronoun": [pronoun, pronoun + 3], "candidates": [[0, 4], [9, 14]], "antecedents": [right]}
    return {"text": text, "language": "en", **spans, "group": text}


_OWN = (_own("Anna met Berta because she was free.", 23, 0), _own("Anna met Berta although she was ill.", 24, 1))


def _csv(rows: tuple[dict[str, Any], ...]) -> str:
    quoted = [
        ",".join('"' + (v if isinstance(v, str) else json.dumps(v)).replace('"', '""') + '"' for v in row.values())
        for row in rows
    ]
    return "\n".join([",".join(rows[0]), *quoted, ""])


TINY: dict[str, Tiny] = {
    "corefud": Tiny(
        {"a.conllu": _conllu("one", _UD_FIRST) + _conllu("two", _UD_SECOND)},
        lambda folder: data.CorefUd(path=str(folder), **_SHARES),
        "\t",
    ),
    "ontogum": Tiny(
        {"a.conllu": _conllu("GUM_news_a", _UD_FIRST) + _conllu("GUM_news_b", _UD_SECOND)},
        lambda folder: data.OntoGum(path=str(folder), **_SHARES),
        "\t",
    ),
    "conll2012": Tiny(
        {"a.conll": _conll("nw/one", _ON_FIRST) + _conll("nw/two", _ON_SECOND)},
        lambda folder: data.Conll2012(path=str(folder), **_SHARES),
        " ",
    ),
    "litbank": Tiny(
        {
            "7_the_mill_brat.txt": "Anna saw the mill .\nShe liked it and Tom .\nHe waved .\n",
            "7_the_mill_brat.ann": _rows(
                *(("MENTION", i, s, a, s, b, words, "PER", form) for i, s, a, b, words, form in _MENTIONS),
                *(("COREF", *chain) for chain in _CHAINS),
            ),
        },
        lambda folder: data.LitBank(path=str(folder), **_SHARES),
        "\t",
    ),
    "clusters": Tiny(
        {
            "a.jsonl": _json_lines(
                {
                    "doc_key": "nw/one",
                    "sentences": [["Anna", "saw", "the", "mill", "."], ["She", "liked", "it", "."]],
                    "clusters": [[[0, 0], [5, 5]], [[2, 3], [7, 7]]],
                },
                {
                    "doc_key": "nw/two",
                    "sentences": [["Tom", "told", "Berta", "that", "he", "liked", "her", "."]],
                    "clusters": [[[0, 0], [4, 4]], [[2, 2], [6, 6]]],
                },
            )
        },
        lambda folder: data.ClusterLines(path=str(folder), ends="inclusive", **_SHARES),
    ),
    "gap": Tiny(
        {
            "gap-development.tsv": _rows(
                _GAP_HEADER,
                ("d-1", _GAP_TEXT, "she", 25, "Anna", 5, "TRUE", "Berta", 14, "FALSE", "http://x"),
                ("d-2", f"So {_GAP_TEXT}", "she", 28, "Anna", 8, "FALSE", "Berta", 17, "TRUE", "http://x"),
            )
        },
        lambda folder: data.Gap(path=str(folder), **_SHARES),
        "\t",
    ),
    "dpr": Tiny(
        {
            "train.c.txt": "".join(
                f"{a} told {b} that she {verb}.\nshe\n{a},{b}\n{answer}\n\n"
                for a, b in (("Ann", "Bea"), ("Eve", "Kim"))
                for verb, answer in (("left", a), ("stayed", b))
            )
        },
        lambda folder: data.Dpr(path=str(folder), **_SHARES),
    ),
    "pdp60": Tiny(
        {"PDP.txt": _PDP.format("left", "Ann") + _PDP.format("stayed", "Bea")},
        lambda folder: data.Pdp60(path=str(folder / "PDP.txt"), **_SHARES),
    ),
    "wsc273": Tiny(
        {
            "WSCollection.xml": "<collection>\n"
            + "".join(
                f"<schema>\n<text><txt1>Ann told Bea that</txt1><pron>she</pron><txt2>{verb}.</txt2></text>\n"
                f"<answers><answer>Ann</answer><answer>Bea</answer></answers>\n<correctAnswer>{right}</correctAnswer>\n"
                "</schema>\n"
                for verb, right in (("left", "A"), ("stayed", "B"))
            )
            + "</collection>\n"
        },
        lambda folder: data.Wsc273(path=str(folder / "WSCollection.xml"), **_SHARES),
    ),
    "winogrande": Tiny(
        {
            "train_xs.jsonl": _json_lines(
                {
                    "qID": "q1-1",
                    "sentence": "Ann told Bea that _ left.",
                    "option1": "Ann",
                    "option2": "Bea",
                    "answer": "1",
                },
                {
                    "qID": "q1-2",
                    "sentence": "Ann told Bea that _ stayed.",
                    "option1": "Ann",
                    "option2": "Bea",
                    "answer": "2",
                },
            )
        },
        lambda folder: data.Winogrande(path=str(folder), **_SHARES),
    ),
    "winobias": Tiny(
        {
            "pro_stereotyped_type1.txt.dev": "1 [The potter] thanked the nurse because [he] left.\n"
            "2 The potter thanked [the nurse] because [she] stayed.\n",
            "female_occupations.txt": "nurse\n",
            "male_occupations.txt": "potter\n",
        },
        lambda folder: data.Winobias(path=str(folder), **_SHARES),
    ),
    "winogender": Tiny(
        {
            "templates.tsv": _rows(
                ("occupation(0)", "other-participant(1)", "answer", "sentence"),
                ("potter", "guest", 0, "The $OCCUPATION told the $PARTICIPANT that $NOM_PRONOUN left."),
                ("potter", "guest", 1, "The $PARTICIPANT told the $OCCUPATION that $NOM_PRONOUN stayed."),
            ),
            "all_sentences.tsv": _rows(
                ("sentid", "sentence"),
                ("potter.guest.0.male.txt", "The potter told the guest that he left."),
                ("potter.guest.1.female.txt", "The guest told the potter that she stayed."),
            ),
        },
        lambda folder: data.Winogender(path=str(folder), **_SHARES),
        "\t",
    ),
    "knowref": Tiny(
        {
            "knowref_test.json": json.dumps(
                [
                    {
                        "sentence_with_pronoun": f"Ann told Bea that [she] {verb}.",
                        "original_sentence": [f"Ann told Bea that she {verb}."],
                        "candidate0": ["Ann"],
                        "candidate1": ["Bea"],
                        "correct_candidate": [right],
                    }
                    for verb, right in (("left", "Ann"), ("stayed", "Bea"))
                ],
                indent=1,
            )
        },
        lambda folder: data.Knowref(path=str(folder / "knowref_test.json"), **_SHARES),
    ),
    "xwino": Tiny(
        {"en.tsv": _rows(_xwino("left", 0), _xwino("stayed", 1))},
        lambda folder: data.Xwino(path=str(folder), **_SHARES),
        "\t",
    ),
    "cluewsc": Tiny(
        {"train.json": _json_lines(_claim("小周", "false"), _claim("小吴", "true"))},
        lambda folder: data.Cluewsc(path=str(folder), **_SHARES),
    ),
    "mandarinograd": Tiny(
        {
            "m.tsv": _rows(
                ("orig_id", "sentence_man", "snippet_man", "answer1_man", "answer2_man", "correct_answer_man"),
                (1, "小周 告诉 小吴 他 来 了 。", "谁 来", "小周", "小吴", "小周"),
                (1, "小周 问 小吴 他 走 不 走 。", "谁 走", "小周", "小吴", "小吴"),
            )
        },
        lambda folder: data.Mandarinograd(path=str(folder / "m.tsv"), **_SHARES),
        "\t",
    ),
    "own_jsonl": Tiny(
        {"a.jsonl": _json_lines(*_OWN)}, lambda folder: data.OwnExamples(path=str(folder / "a.jsonl"), **_SHARES)
    ),
    "own_csv": Tiny({"a.csv": _csv(_OWN)}, lambda folder: data.OwnExamples(path=str(folder / "a.csv"), **_SHARES)),
    "labelled_text": Tiny(
        {"a.tsv": _rows(("text", "label"), ("a good film", "good"), ("a bad film", "bad"), ("the best film", "good"))},
        lambda folder: data.LabelledText(path=str(folder / "a.tsv"), **_SHARES),
        "\t",
    ),
    "sst2": Tiny(
        {"train.tsv": _rows(("sentence", "label"), ("a good film", 1), ("a bad film", 0), ("the best film", 1))},
        lambda folder: data.Sst2(path=str(folder), **_SHARES),
        "\t",
    ),
    "rotten_tomatoes": Tiny(
        {"rt-polarity.pos": "a good film\nthe best film\n", "rt-polarity.neg": "a bad film\n"},
        lambda folder: data.RottenTomatoes(path=str(folder), **_SHARES),
    ),
    "ag_news": Tiny(
        {"train.tsv": _rows(("text", "label"), ("shares fell", "3"), ("the team won", "2"), ("a vote was held", "1"))},
        lambda folder: data.AgNews(path=str(folder), **_SHARES),
        "\t",
    ),
    "chnsenticorp": Tiny(
        {"train.tsv": _rows(("label", "text_a"), ("1", "房间很干净。"), ("0", "服务太差。"), ("1", "早餐很好吃。"))},
        lambda folder: data.ChnSentiCorp(path=str(folder), **_SHARES),
        "\t",
    ),
    "labelled_jsonl": Tiny(
        {"a.jsonl": _json_lines({"text": "a good film", "label": "good"}, {"text": "a bad film", "label": "bad"})},
        lambda folder: data.LabelledText(path=str(folder / "a.jsonl"), **_SHARES),
    ),
    "wsc273_copy": Tiny(
        {"wsc273.txt": _PDP.format("left", "Ann") + _PDP.format("stayed", "Bea")},
        lambda folder: data.Wsc273(path=str(folder / "wsc273.txt"), **_SHARES),
    ),
    "litbank_conll": Tiny(
        {
            "a.conll": _conll("nw/one", _ON_FIRST)
            .replace("nw/one 0 ", "nw/one\t0\t")
            .replace(" ", "\t")
            .replace("#begin\tdocument\t(nw/one);\tpart\t000", "#begin document (nw/one); part 000")
            .replace("#end\tdocument", "#end document")
        },
        lambda folder: data.Conll2012(path=str(folder), **_SHARES),
        "\t",
    ),
    "plain_txt": Tiny(
        {"a.txt": "Anna met Berta.\n\nShe was free.\n"}, lambda folder: data.PlainText(path=str(folder), **_SHARES)
    ),
    "wikitext": Tiny(
        {"wiki.train.tokens": " \n = Anna = \n \n Anna met Berta . \n \n = Tom = \n \n He was free . \n"},
        lambda folder: data.PlainText(path=str(folder), **_SHARES),
    ),
    "plain_text": Tiny(
        {"a.jsonl": _json_lines({"text": "Anna met Berta.", "title": "Anna"}, {"text": "She was free."})},
        lambda folder: data.PlainText(path=str(folder), **_SHARES),
    ),
}
"""All corpora that are read from files; `silver` is read in the same way as `plain_text`."""

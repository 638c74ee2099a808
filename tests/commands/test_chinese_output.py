"""What commands print at their end, in Chinese: no English word is left but names of files, settings and metrics."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from anaphora.analysis.maps.answers import Answers
from anaphora.analysis.scores.baselines import learned, policies
from anaphora.analysis.scores.baselines.order_models import RULE_MODEL, TABLE_OF_WORDINGS
from anaphora.analysis.tasks import antecedent_rules
from anaphora.analysis.tasks.answered import MODEL, NONE_OF_THEM, ItemAnswers, accuracy_table
from anaphora.analysis.tasks.antecedent_selection import CHOICE_SETS, FORM_COLUMNS
from anaphora.analysis.tasks.gap import gap_score, rule_scores, score_columns
from anaphora.analysis.tasks.labels import accuracy_by_label, accuracy_by_policy
from anaphora.base.locale import translation
from anaphora.base.locale.translation import spoken_in
from anaphora.commands import (
    antecedents,
    attention,
    corpus,
    cross_validate,
    evaluate,
    gap,
    labels,
    serve,
    shared,
)
from anaphora.data.controlled.describe import corpus_table
from anaphora.data.corpora.division import ReadingReport
from anaphora.data.corpora.readers import origin_of
from anaphora.data.example import Example
from anaphora.data.text import Text
from anaphora.report.terminal import print_phrase
from anaphora.report.wording import labels as phrases
from anaphora.report.wording import phrase
from anaphora.settings.commands.live import LivePage
from anaphora.settings.data import Data, Dpr
from anaphora.settings.variants import VARIANTS

Chinese = Callable[..., str]
SHORTCUTS = list(
    dict.fromkeys(("chance", *policies.POLICIES, *learned.LEARNED_FROM_FEW_CANDIDATES, TABLE_OF_WORDINGS, RULE_MODEL))
)
EXAMPLES = [
    Example(
        text="Anna met Emma before she left",
        language=("en", "zh")[number % 2],
        pronoun=(21, 24),
        candidates=(((0, 4),), ((9, 13),)),
        antecedents=() if number == 3 else (number % 2,),
        group=str(number),
        minimal_pair="p",
        factors={"kind": ("set", "role")[number % 2], "type": "voice", "stratum": "main", "distance": "3"},
    )
    for number in range(4)
]
TEXTS = [Text(text=f"well {number}", language="en", label="ab"[number % 2]) for number in range(6)]


@pytest.fixture
def chinese(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Chinese:
    """(names that stay, what prints, its arguments) -> what is printed in Chinese; other Latin words are a failure."""

    def printed(names: str, write: Callable[..., object], *arguments: Any, **named: Any) -> str:
        written = {}
        for language in ("en", "zh"):
            monkeypatch.setenv(translation.VARIABLE, language)
            write(*arguments, **named)
            written[language] = capsys.readouterr().out
        left = written["zh"]
        for name in sorted(names.split(), key=len, reverse=True):
            left = left.replace(name, "")
        assert re.findall("[A-Za-z]{2,}", left) == [], written["zh"]
        english, spoken = (sorted(re.findall(r"\d+\.\d+", text)) for text in written.values())
        assert english == spoken
        return written["zh"]

    return printed


@pytest.mark.parametrize("title", ["cross_validation", "transfer"])
def test_the_table_of_answers_is_chinese(title: str, chinese: Chinese) -> None:
    named = [Answers.about(EXAMPLES, np.array(row)) for row in ([0, 1, 0, -1], [0, 0, -1, -1])]
    fits = {name: np.full(4, 0.5) for name in [*SHORTCUTS, f"bag_of_words{shared.OWN_FOLDS_SUFFIX}"]}
    rows = accuracy_table(ItemAnswers(EXAMPLES, named, fits), ["kind", "type"], "kind")
    values = {"data": "gap", "runs": 2, "folds": 5, "source": "dpr"}
    text = chinese("gap dpr", cross_validate.print_answers, rows, title, **values)
    for heading in ("由什么回答", "最小对立对", "逐个候选判断", "回答“都不是”", "模型减去它", "两种取值之差"):
        assert heading in text
    assert "词袋（在样例的其他折上学习）" in text and "语态" in text and "全部" in text


def test_every_shortcut_has_its_chinese() -> None:
    with spoken_in("zh"):
        for name in (*SHORTCUTS, MODEL, NONE_OF_THEM):
            assert not re.search("[A-Za-z]", shared.policy_name(name)), name
    assert shared.policy_name("most_frequent") == "most frequent"
    assert shared.policy_name(f"words{shared.OWN_FOLDS_SUFFIX}") == "words on own folds"


def test_the_accuracy_of_runs_is_chinese(chinese: Chinese) -> None:
    rows = evaluate.accuracy_rows(EXAMPLES, np.array([1.0, 0.0, 1.0, 1.0]))
    assert "角色线索" in chinese("demo", evaluate.print_accuracy, "demo", "test", rows)
    by_label = accuracy_by_label(TEXTS, ["a"] * 6, ["b"] * 6)
    chinese("demo", evaluate.print_label_accuracy, "demo", "dev", by_label)
    chinese("demo", evaluate.print_perplexity, "demo", "test", 12.345, 100)
    linear = ("bag of its tokens", "bag of words and pairs", "most frequent label")
    answers = {"encoder": [["a"] * 6, ["b"] * 6], **{name: [["a"] * 6] for name in linear}}
    chinese("sst2", labels.print_labels, accuracy_by_policy(TEXTS, answers), "sst2", "test", 2)


def test_what_a_corpus_holds_is_chinese(chinese: Chinese) -> None:
    chinese("", corpus.print_table_of, "items", corpus_table({"train": EXAMPLES, "test": EXAMPLES[:1]}))
    texts = {"split": "train", "label": "", "texts": 3, "words": 4, "characters": 5}
    chinese("", corpus.print_table_of, "texts", [texts])
    row = {"language": "en", "kind": "role", "items": 3, "accuracy": 0.5, "low": 0.4, "high": None}
    chinese("", corpus.print_table_of, "shortcuts", [{"name": name, **row} for name in SHORTCUTS])
    factors = {"factor": "gender", "value": "female", "items": 3, **dict.fromkeys(SHORTCUTS, 0.5)}
    text = chinese("", corpus.print_table_of, "by_factor", [factors], SHORTCUTS)
    assert "词与词对" in text and "词数" not in text
    report = ReadingReport(rows=11, dropped=(("line 3", "a candidate is not in the sentence"),))
    for counted in ("read_items", "read_texts"):
        names = "x/y.txt docs/corpora.zh.md docs/corpora.md"
        text = chinese(names, corpus.print_reading, counted, 10, report, 1.5, Dpr(path="x/y.txt"))
        assert "去掉 1 行（有一个候选不在句子里）" in text


def test_what_is_said_about_licences_is_chinese() -> None:
    for licence in {origin_of(one()).licence for one in VARIANTS[Data].values()} - {""}:
        spoken = phrases("licences", "zh").get(licence, licence)
        assert not re.search("[a-z]{3}", re.sub("LICENSE|Apache|OntoNotes|wikiHow", "", spoken)), licence


@pytest.mark.parametrize("title", ["names_without_tuning", "names_of_folds", "names_of_split"])
def test_name_decisions_are_chinese(title: str, chinese: Chinese) -> None:
    items = [replace(one, factors={"gender": gender}) for one in EXAMPLES for gender in ("male", "female")]
    right = np.ones((1, len(items), 2), dtype=bool)
    heads = ("best head", "best head, either direction")
    others = ("demo", "demo, both ways", "mean of 2", "mean of 2, both ways", "all 3 folds", "probe over heads")
    named = [*heads, *(f"{name}, with threshold" for name in heads), *others]
    scores = {**rule_scores(items), **dict.fromkeys(named, gap_score(right, items))}
    rows = [{"policy": name, **score_columns(score)} for name, score in scores.items()]
    heading = phrase("tables", title, "zh", items=3, folds=2, split="测试集")
    text = chinese("demo F1", gap.print_decisions, heading, rows, ["demo"])
    assert "2 次运行的平均，正反两次评测" in text and "全部 3 折" in text and "最好的头，两个方向，带阈值" in text
    assert "demo，正反两次评测" in text and "随机猜测" in text
    evaluation = gap.GapEvaluation({}, np.stack([np.concatenate([right, ~right])] * 2), items)
    assert "的回答有变化" in chinese("F1", gap._print_exchange_gain, evaluation)


def test_heads_as_selectors_are_chinese(chinese: Chinese) -> None:
    rows: list[dict[str, Any]] = []
    for number, column in enumerate(FORM_COLUMNS):
        ends = {"low": None, "high": None} if number == 1 else {"low": 0.1 * number, "high": 0.1 * number + 0.05}
        common = {"subset": "all", "column": column, "items": 12, "accuracy": 0.5, "layer": None, "head": None, **ends}
        rows += [{**common, "selector": name, "field": "mentions"} for name in antecedent_rules.RULES]
        chosen = {**common, "layer": 1, "head": 2}
        for field in CHOICE_SETS:
            rows += [{**chosen, "selector": one, "field": field} for one in ("best head", "one head")]
            rows.append({**common, "selector": "untrained", "field": field})
    rules = [row for row in rows if row["selector"] in antecedent_rules.RULES]
    names = "demo Clark OntoNotes BERT-base"
    for some in (rows, rules, [row for row in rows if row["column"] == "all"]):
        chinese(names, antecedents.print_selections, {"run": "demo", "split": "test", "rows": some})


def test_what_intervals_say_of_a_head_is_chinese() -> None:
    for name in phrases("selection"):
        values = dict.fromkeys(("run", "selector", "mentions", "head", "share", "nearest", "split"), "")
        assert not re.search("[A-Za-z]", phrase("selection", name, "zh", **values))


def test_the_heads_of_a_text_are_chinese(chinese: Chinese) -> None:
    maps = SimpleNamespace(rank=lambda *_: [SimpleNamespace(layer=0, head=1, weight=0.5)])
    chinese("she Anna Emma", attention.print_ranking, maps, "she", ["Anna", "Emma"])


def test_lines_with_values_are_chinese(chinese: Chinese) -> None:
    shape = {"items": 1, "rows": 2, "layers": 3, "heads": 4, "path": "a/b", "size": "5 kB", "duration": "6 s"}
    lines: dict[str, dict[str, object]] = {
        **{name: {**shape, "memory": 7} for name in ("extract_plan", "extracted", "extracted_memory")},
        **dict.fromkeys(("tables", "answers", "answers_and_templates", "answers_and_accuracies"), shape),
        "seen_items": {"items": 1, "data": "dpr"},
        **{name: {} for name in ("no_test_split", "no_training_split", "decoder", "stopped")},
    }
    for name, values in lines.items():
        chinese("kB MiB a/b data=dpr data.test_share data.dev_share", print_phrase, name, **values)


def test_the_terminal_of_the_live_page_is_chinese(chinese: Chinese, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop() -> None:
        raise KeyboardInterrupt

    server, address = SimpleNamespace(serve_forever=stop, server_close=lambda: None), "http://127.0.0.1:1/?token=x"
    monkeypatch.setattr(serve, "LiveApplication", lambda *_: None)
    monkeypatch.setattr(serve, "open_models", lambda *_: {})
    monkeypatch.setattr(serve, "serve", lambda *_: (server, address))
    assert chinese(f"{address} Ctrl", serve.serve_page, LivePage()).splitlines()[-1] == "已停止"


def test_commands_are_chinese_from_end_to_end(
    own_run: Path, script: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(translation.VARIABLE, "zh")
    for command, more in (("evaluate", ()), ("extract_attention", ()), ("antecedents", ("untrained=0", "formats=[]"))):
        done = script(command, f"run={own_run}", *more)
        assert done.status == 0, done.err
        left = re.sub(r"/\S+|\b(?:own|MiB|kB|MB|Clark|OntoNotes|BERT-base)\b", "", done.out)
        assert re.findall("[A-Za-z]{2,}", left) == [], done.out
    assert "每个头选中哪个词" in done.err and "篇/s" in done.err

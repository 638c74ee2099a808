"""Text of the pages and pictures in each language."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Words:
    """Labels of tables and pictures in one language.

    Attributes:
        claims: statement of each claim, and the rule that could refute it.
        verdicts: labels by the verdict in the files.
        sets: names of each `Reading`, corpus and model.
        types: names of cue types.
        shortcuts: names of positional rules and fitted shortcuts.
        comma, aside: marks between the entries of a list, and before a further name.
    """

    claims: dict[str, tuple[str, str]]
    verdicts: dict[str, str]
    sets: dict[str, str]
    types: dict[str, str]
    shortcuts: dict[str, str]
    columns: dict[str, str]
    heads: str
    heads_title: str
    grids: tuple[str, str, str]
    axes: tuple[str, str]
    accuracy: str
    types_title: str
    best: str
    sentences_title: str
    pair: tuple[str, str]
    copies: str
    comma: str
    aside: str
    colon: str
    semicolon: str
    brackets: str
    span: str
    likelihoods: str
    controlled: str
    kinds: dict[str, str]


EN = Words(
    claims={
        "points": (
            "The head picks the antecedent",
            "right answers, %: at least 60, interval above 50, corrected p < 0.05",
        ),
        "same_head": ("English and Chinese choose the same head", "layer.head on development"),
        "beats_shortcut": ("It beats the best shortcut", "points more: interval above 0"),
        "beats_copies": ("It beats 20 untrained and 20 shuffled copies", "right answers, %: more than the best copy"),
        "one_head": ("It is one head and not many", "points more than the second best head: interval above 0"),
        "words_decide": (
            "It picks by the form of words, not by roles or meaning",
            "points more on gender, number, animacy: at least 20",
        ),
        "no_roles": ("Where only roles decide, it is at chance", "right answers, %: interval within 35 to 65"),
        "pronoun_alone": ("The rows of neighbouring words do not point", "points more: interval above 10"),
        "noun_in_place": (
            "“The woman” in the pronoun's place points as well",
            "points more than the pronoun: at least -10, and above chance",
        ),
        "names_exchanged": (
            "It follows the word, not the position",
            "% that follow the word minus % that follow the position: interval above 0",
        ),
        "transfers": (
            "It beats position rules on other corpora",
            "points more: interval above 0 on 3 of each model's corpora",
        ),
        "vector_needs_edge": (
            "The sentence's vector needs its edge",
            "cosine lost, in hundredths, more than for a matched edge: interval above 0",
        ),
        "probe_needs_edge": ("A probe needs its edge", "points lost, more than for a matched edge: at least 5"),
        "likelihoods_need_edge": (
            "A language model's likelihoods need the edge of its own best head",
            "points lost, more than for a matched edge: interval above 0",
        ),
    },
    verdicts={"stands": "**stands**", "falls": "**falls**", "not decided": "not decided"},
    sets={
        "e5-zh": "e5, Chinese",
        "e5-en": "e5, English",
        "minilm-en": "MiniLM, English",
        "e5": "e5",
        "minilm": "MiniLM",
        "smollm2": "SmolLM2",
        "en": "English",
        "zh": "Chinese",
        "gap": "GAP",
        "ontogum": "OntoGUM",
        "litbank": "LitBank",
        "xwino": "XWino",
        "cluewsc": "CLUEWSC",
        "untrained": "untrained",
        "shuffled": "shuffled",
    },
    types={
        "gender": "gender",
        "number": "number",
        "animacy": "animacy",
        "selection": "selection",
        "role": "role",
        "long": "long",
        "all": "all",
    },
    shortcuts={
        "nearest": "nearest",
        "first": "first",
        "longest": "longest",
        "entity_cue": "table of pronouns and nouns",
    },
    columns={
        "claim": "claim",
        "rule": "measure, and what it must be",
        "numbers": "measured [95 % interval]",
        "verdict": "verdict",
        "type": "right antecedent, %",
        "items": "sentences",
        "head": "the head",
        "second": "second best head",
        "shortcut": "best shortcut",
        "copies": "best of {count} {kind} copies",
        "corpus": "corpus",
        "chance": "chance",
        "rule_of_position": "best rule of position",
        "edge": "without the edge",
        "matched": "without a matched edge",
        "whole": "whole",
        "probe": "probe, %",
        "vector": "vector, cosine / 100",
        "any_copies": "best copy (of how many)",
    },
    heads="{head}; the second best: {second}",
    heads_title="The same head of e5 stands out in English and in Chinese",
    grids=("e5, English development", "e5, Chinese development", "MiniLM, English development"),
    axes=("layer", "head"),
    accuracy="candidate accuracy (%)",
    types_title="The head picks the antecedent where the form of words decides, and not where roles or meaning do",
    best="best shortcut in that language",
    sentences_title="One word changes, and layer {layer} head {head} of e5 goes from the pronoun to the other name",
    pair=("English", "Chinese"),
    comma=", ",
    aside=", ",
    colon=": ",
    semicolon="; ",
    brackets=" ({text})",
    span="{least} to {most}",
    copies="Each model has at least {everyday} copies of each kind on everyday sentences, {gap} on GAP and {corpora} "
    "on every other corpus.",
    likelihoods="Asked which candidate the pronoun refers to, SmolLM2 gives the antecedent the higher likelihood in "
    "{right} % of {items} English sentences; its best head (layer {layer} head {head}) picks the antecedent in "
    "{pointing} %. Without this head's edge {without} % of the answers are right.",
    controlled="built-in corpus, {kind} cues, {language}, {model}",
    kinds={"set": "set", "role": "role"},
)
ZH = Words(
    claims={
        "points": ("这个头选中先行词", "准确率，%：至少 60，区间高于 50，校正后 p < 0.05"),
        "same_head": ("英语和汉语选出同一个头", "开发集上选出的“层.头”"),
        "beats_shortcut": ("它胜过最好的捷径", "多出的百分点：区间高于 0"),
        "beats_copies": ("它胜过 20 个未训练的和 20 个打乱权重的副本", "准确率，%：高于最好的副本"),
        "one_head": ("是一个头，不是许多头", "比第二好的头多出的百分点：区间高于 0"),
        "words_decide": ("它凭词的形式来选，不凭角色和意义", "性别、单复数、有无生命三类上多出的百分点：至少 20"),
        "no_roles": ("只有角色能决定时，它停在随机水平", "准确率，%：区间在 35 到 65 之间"),
        "pronoun_alone": ("相邻的词不指向先行词", "多出的百分点：区间高于 10"),
        "noun_in_place": ("代词换成“那个女人”，照样指向先行词", "比代词多出的百分点：至少 -10，且高于随机水平"),
        "names_exchanged": ("它跟着词走，不跟着位置走", "跟着词的 % 减去跟着位置的 %：区间高于 0"),
        "transfers": ("在别人的语料上，它胜过位置规则", "多出的百分点：每个模型至少在 3 个语料上区间高于 0"),
        "vector_needs_edge": ("句向量需要它的这条边", "余弦差的额外下降（单位 0.01，与对照边相比）：区间高于 0"),
        "probe_needs_edge": ("探针需要它的这条边", "多损失的百分点（与对照边相比）：至少 5"),
        "likelihoods_need_edge": ("语言模型的似然需要它自己最好的头的边", "多损失的百分点（与对照边相比）：区间高于 0"),
    },
    verdicts={"stands": "**成立**", "falls": "**不成立**", "not decided": "未定"},
    sets={
        "e5-zh": "e5，汉语",
        "e5-en": "e5，英语",
        "minilm-en": "MiniLM，英语",
        "e5": "e5",
        "minilm": "MiniLM",
        "smollm2": "SmolLM2",
        "en": "英语",
        "zh": "汉语",
        "gap": "GAP",
        "ontogum": "OntoGUM",
        "litbank": "LitBank",
        "xwino": "XWino",
        "cluewsc": "CLUEWSC",
        "untrained": "未训练的",
        "shuffled": "打乱权重的",
    },
    types={
        "gender": "性别",
        "number": "单复数",
        "animacy": "有无生命",
        "selection": "搭配",
        "role": "角色",
        "long": "长句",
        "all": "全部",
    },
    shortcuts={
        "nearest": "最近的候选",
        "first": "第一个候选",
        "longest": "最长的候选",
        "entity_cue": "代词与名词的搭配表",
    },
    columns={
        "claim": "论断",
        "rule": "测什么，须达到多少",
        "numbers": "测得的数 [95% 区间]",
        "verdict": "结论",
        "type": "选中先行词，%",
        "items": "句数",
        "head": "这个头",
        "second": "第二好的头",
        "shortcut": "最好的捷径",
        "copies": "{count} 个{kind}副本中最好的",
        "corpus": "语料",
        "chance": "随机水平",
        "rule_of_position": "最好的位置规则",
        "edge": "敲除这条边",
        "matched": "敲除对照边",
        "whole": "不改动",
        "probe": "探针，%",
        "vector": "句向量，余弦 / 100",
        "any_copies": "最好的副本（个数）",
    },
    heads="{head}；第二好的：{second}",
    heads_title="在英语和汉语里，e5 都是同一个头最突出",
    grids=("e5，英语开发集", "e5，汉语开发集", "MiniLM，英语开发集"),
    axes=("层", "头"),
    accuracy="候选准确率（%）",
    types_title="词的形式能决定时，这个头选中先行词；要靠角色或意义时则不能",
    best="该语言最好的捷径",
    sentences_title="e5 的一个头（第 {layer} 层第 {head} 头）从代词关注哪些词：只换一个词，它就转向另一个人",
    pair=("英语", "汉语"),
    comma="、",
    aside="，",
    colon="：",
    semicolon="；",
    brackets="（{text}）",
    span="{least} 到 {most}",
    copies="每种副本在日常句子上至少有 {everyday} 个，在 GAP 上至少有 {gap} 个，在其他语料上至少有 {corpora} 个。",
    likelihoods="问 SmolLM2 代词指谁，{items} 个英语句子里有 {right}% 是先行词的似然更高；"
    "它最好的头（第 {layer} 层第 {head} 头）在 {pointing}% 的句子里选中先行词。"
    "敲除这个头的边以后，答对的有 {without}%。",
    controlled="内置语料，{kind}线索，{language}，{model}",
    kinds={"set": "集合", "role": "角色"},
)

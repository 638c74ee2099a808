"""Text of both pages, with placeholders for values and tables."""

from __future__ import annotations

_OPENING_EN = """# Forty sentences that people type first

<!-- Written by experiments/sentences; do not edit by hand. -->

**English** | [简体中文](sentences.zh.md)

**Runs with the demo's recipe answer about half of these sentences correctly, which is no better than chance.**
Linguistics textbooks, test sets and blog posts about attention share a stock of sentences, such as those about a trophy
and a suitcase, councilmen and demonstrators, or an animal and a street. Someone who tries a model is likely to type one
of them. This page has forty such sentences in each language, in our own words. The list
([English](../../experiments/sentences/en.jsonl), [Chinese](../../experiments/sentences/zh.jsonl), in the format of
[your own data](../own_data.md)) was fixed before any run was evaluated on it. In half of the sentences, every word
occurs in the built-in corpus; in the other half, at least one word does not. The pronoun refers to the first mention as
often as to the second. All but two sentences in each language come in minimal pairs, which differ only in the cue.

The first group of runs was trained with the demo's recipe and includes the demo's own run on one thread. On two
threads, rounding makes it [another run](compositions.md#results), which answers 45 % of the English and 60 % of the
Chinese sentences correctly. The second group was also trained on
[everyday scenes](../../experiments/everyday/README.md). Apart from these scenes, all runs learn from the built-in
corpus alone."""

_OPENING_ZH = """# 人们最先输入的四十句话

<!-- 由 experiments/sentences 生成，请勿手工修改。 -->

[English](sentences.md) | **简体中文**

**用演示的配方训练的模型，这些句子大约只答对一半，并不比随机水平好。**
语言学教科书、测试集和介绍注意力的文章常用同一类句子，讲的是奖杯和箱子、议员和示威者、动物和马路。\
试用模型的人，往往先输入其中一句。本页收集了这类句子，每种语言四十句，措辞都是我们自己的。\
句子清单（[英语](../../experiments/sentences/en.jsonl)、[汉语](../../experiments/sentences/zh.jsonl)，\
格式见[自有数据](../own_data.zh.md)）在用它测量任何模型之前就已确定。\
其中一半句子的每个词都在内置语料中出现过，另一半至少有一个词没有出现过。\
先行词在前的句子与先行词在后的句子一样多；每种语言除两句以外，都两两组成最小对立对，一对里的两句只有线索不同。

第一组模型用演示的配方训练，其中包括演示本身用单线程训练的模型；用两个线程训练，舍入不同，得到的是\
[另一个模型](compositions.zh.md#结果)，英语句子答对 45%，汉语句子答对 60%。\
第二组还学了[日常场景](../../experiments/everyday/README.zh.md)。除了这些场景，所有模型都只在内置语料上训练。"""

_RESULTS_EN = """## Results

Numbers are in percent: the median over {runs} runs, with the lowest and the highest in brackets. A run's head, chosen
on the development split, picks the antecedent if the antecedent gets more of the pronoun's weight than the other
candidate does. "Pairs" is the share of minimal pairs in which both answers are right (25 by chance). "Copied" is the
accuracy of the answers of the [nearest training sentences](#how-near-the-training-sentences-are). The last two columns
show the accuracy of always choosing the candidate nearest to the pronoun, and of always choosing the first one.

A word that does not occur in training is split into subwords, down to single letters. In Chinese, a character may be
completely unknown; the tables at the end of this page list unknown stretches of text, which are not always words. The
model does not understand such words. In sentences that contain them, answer and head often disagree: a candidate's
score is the mean over its subwords, most of which do not occur in training. But knowing every word is not enough. The
corpus of these runs teaches which of two people a reason is about and which class of things a predicate suits; nothing
in it says that a big trophy does not fit into a suitcase. In {same} % of the pairs (median), a run names the same
candidate in both sentences: the difference between them does not change its answer."""

_COMMANDS_EN = """These commands train the runs, choose their heads and write this page:

```bash
{train}
.venv/bin/python -m experiments.sentences 'runs=[{runs}]'
```"""

_COMMANDS_ZH = """以下命令训练这些模型、选出各个模型的头，并写出本页：

```bash
{train}
.venv/bin/python -m experiments.sentences 'runs=[{runs}]'
```"""

_EVERYDAY_EN = """## With everyday scenes

These runs were also trained on [everyday scenes](../../experiments/everyday/README.md), 195 in English and 161 in
Chinese. The scenes were written after the list of sentences, by people who knew the list, so many scenes are about the
same situations: something that does not go into something else, an animal that does not cross a road. Only the wordings
differ. An automated test measures how near the wordings of the scenes (with their gaps unfilled; in Chinese, character
by character) come to the sentences: the [nearness](#how-near-the-training-sentences-are) is at most {limit}. Training
sentences, in which the gaps are filled, can be nearer (see the last column of the tables below). So these tables answer
one question: does a model that has learned a situation in many wordings understand it in one more? In {same} % of the
pairs (median), it does not: a run names the same candidate in both sentences, although their pronouns refer to
different ones.

The next table answers this question with scenes of the development split, in percent (chance: 50; number of runs:
{runs}). In the first row, a scene is worded as in training, but with nouns that are new in this scene; in the second,
the wording and the reason are new too. (In 10 % of the English and 20 % of the Chinese items of the first row, at least
one of the two nouns is [in no training sentence at all](../../experiments/everyday/README.md); in the second row, in
9 % and 19 %.)"""

_SCENES_EN = """So what the model learns of a scene is mostly its wordings. With new nouns, most items are answered
correctly, and the head mostly picks the antecedent; in wordings that do not occur in training, accuracy is much lower.
The scenes use some 3,900 English and 2,800 Chinese words. The runs trained on the scenes answer {en_after} of the forty
English sentences and {zh_after} of the Chinese ones correctly; the other runs answer {en_before} and {zh_before}. So at
least here, an encoder of this size mostly learns the scenes by heart, and little of what the wordings of a scene have
in common."""

_EVERYDAY_ZH = """## 学过日常场景的模型

这些模型还学了[日常场景](../../experiments/everyday/README.zh.md)，英语 195 个，汉语 161 个。\
场景写于句子清单之后，编写的人看过清单，所以许多场景说的就是同样的事：\
一件东西放不进另一件东西，一只动物没有过马路，只是说法不同。\
有一项测试拿场景的原文（空位未填，汉语逐字比较）与这些句子相比，[接近度](#与训练句子的距离)都不超过 {limit}；\
训练句子填好了空位，可能更接近（见下面各表的最后一栏）。\
所以这几张表回答的是：一种情形，模型学过许多种说法，再换一种说法还懂不懂？\
在 {same}% 的最小对立对中（中位数），模型并不懂：两句里的代词指不同的候选，同一个模型却给出同一个候选。

下表用开发集里的场景回答这个问题（数字都是百分比，随机水平为 50；模型个数：{runs}）。\
第一行里，场景的说法与训练时相同，只是名词没有在这个场景里出现过；第二行里，说法和理由也是新的。\
（第一行里，10% 的英语样例和 20% 的汉语样例至少有一个名词\
[不在任何训练句子里](../../experiments/everyday/README.zh.md)；第二行里是 9% 和 19%。）"""

_SCENES_ZH = """可见，模型从这些场景学到的，主要是背下来的一句句说法：\
换了名词，大多数样例仍能答对，头也大多选中先行词；\
换成训练中没有的说法，准确率就低得多。\
日常场景用到约 3,900 个英语词和 2,800 个汉语词。\
学过日常场景的模型，四十句英语答对 {en_after}，没有学过的模型答对 {en_before}；\
四十句汉语答对 {zh_after}，没有学过的模型答对 {zh_before}。\
就这些模型来看，这种规模的编码器多半是把场景背下来，很少学会同一场景各种说法的共同点。"""

_RESULTS_ZH = """## 结果

数字都是百分比，取 {runs} 个模型的中位数，括号里是最低值和最高值。\
选定的头（在开发集上选出）里，代词给先行词的权重如果大于给另一个候选的权重，就算头选中先行词。\
“两句都对”一栏，是两句都答对的最小对立对所占的比例（随机水平为 25）。\
“照搬”一栏，是照搬[最接近的训练句子](#与训练句子的距离)的答案时的准确率。\
最后两栏是两条捷径的准确率：一条总选离代词最近的候选，另一条总选第一个候选。

训练中没有出现过的词会拆成子词，英语有时拆到单个字母；汉语里有的字模型完全不认识，\
本页末尾的表列出的是未知的片段，不一定是词。\
模型不理解这样的词和字。遇到它们时，回答和头常常不一致：候选的得分是它各个子词得分的平均值，\
而这些子词大多没有在训练中出现过。\
但认识每个词还不够。这些模型的语料教的是，一个理由说的是两人中的哪一个，一个谓语适合哪一类事物；\
语料里并没有说太大的奖杯放不进箱子。\
在 {same}% 的最小对立对中（中位数），同一个模型对两句给出同一个候选：两句之间的差别没有改变回答。"""

_NEARNESS_EN = """## How near the training sentences are

The last column of the tables below shows how near a sentence comes to the nearest training sentence of its language in
the corpus of the runs. We mask candidates and pronoun and count the fewest words that must be inserted, deleted or
replaced to turn one sentence into the other. Nearness is 1 minus this count divided by the number of words in the
longer sentence, so a training sentence has a nearness of 1. For the demo's corpus, the median is {en_median} in English
and {zh_median} in Chinese; the highest is {en_most} in English and {zh_most} in Chinese. "Tom was pushed by Bob because
he was angry" and its active form come nearest: the corpus has many sentences of the same structure with other names and
words.

In the tables, the antecedent is in bold and the pronoun in italics; the head's weights are medians over the runs."""

_NEARNESS_ZH = """## 与训练句子的距离

下面各表的最后一栏，是每个句子与最接近它的训练句子（在这些模型的语料里，同一种语言）的接近度。\
比较时遮住候选和代词，数出把一句变成另一句最少要插入、删除或替换几个词。\
用这个数除以两句中较长一句的词数，再用 1 减去所得的商，就是接近度；训练句子自身的接近度为 1。\
就演示的语料而言，英语的中位数是 {en_median}，汉语是 {zh_median}；最高分别是 {en_most} 和 {zh_most}。\
最接近的是“Tom was pushed by Bob because he was angry”和它的主动形式：\
语料中有许多结构相同的句子，只是名字和词不同。

表中粗体的是先行词，斜体或加点线的是代词；头的权重是各个模型的中位数。"""

PHRASES = {
    "en": {
        "opening": _OPENING_EN,
        "results": _RESULTS_EN,
        "commands": _COMMANDS_EN,
        "everyday": _EVERYDAY_EN,
        "scenes": _SCENES_EN,
        "enanswers": "English: answer right",
        "enheads": "the head picks the antecedent",
        "zhanswers": "Chinese: answer right",
        "zhheads": "the head picks the antecedent",
        "everyday_row": "new nouns",
        "everyday_reworded_row": "new nouns, wording and reason",
        "nearness": _NEARNESS_EN,
        "allresults": "All sentences: ",
        "alleveryday": "All sentences with everyday scenes: ",
        "en": "English",
        "zh": "Chinese",
        "enresults": "English",
        "zhresults": "Chinese",
        "eneveryday": "English with everyday scenes",
        "zheveryday": "Chinese with everyday scenes",
        "copied": "copied",
        "known": "every word known",
        "cut": "with unknown words",
        "both": "all",
        "sentences": "sentences",
        "answer": "answer right",
        "head": "head picks the antecedent",
        "answer_and_head": "answer and head right",
        "pairs": "pairs",
        "chance": "chance",
        "nearest": "nearest candidate",
        "first": "first candidate",
        "number": "",
        "sentence": "sentence",
        "answers": "answers (runs)",
        "right_answers": "the answer is",
        "weights": "head's weight",
        "right_heads": "the head is",
        "unknown": "unknown words or stretches",
        "near": "nearness",
        "none": "none of them",
        "no_word": "none",
        "comma": ", ",
        "right": "right",
        "wrong": "wrong",
        "some": "right in {right} of {runs}",
    },
    "zh": {
        "opening": _OPENING_ZH,
        "results": _RESULTS_ZH,
        "commands": _COMMANDS_ZH,
        "everyday": _EVERYDAY_ZH,
        "scenes": _SCENES_ZH,
        "enanswers": "英语：回答正确",
        "enheads": "头选中先行词",
        "zhanswers": "汉语：回答正确",
        "zhheads": "头选中先行词",
        "everyday_row": "名词是新的",
        "everyday_reworded_row": "名词、说法和理由都是新的",
        "nearness": _NEARNESS_ZH,
        "allresults": "全部句子：",
        "alleveryday": "学过日常场景的模型，全部句子：",
        "en": "英语",
        "zh": "汉语",
        "enresults": "英语",
        "zhresults": "汉语",
        "eneveryday": "英语，学过日常场景",
        "zheveryday": "汉语，学过日常场景",
        "copied": "照搬",
        "known": "每个词都认识",
        "cut": "有不认识的词",
        "both": "全部",
        "sentences": "句数",
        "answer": "回答正确",
        "head": "头选中先行词",
        "answer_and_head": "回答和头都正确",
        "pairs": "两句都对",
        "chance": "随机水平",
        "nearest": "最近的候选",
        "first": "第一个候选",
        "number": "",
        "sentence": "句子",
        "answers": "模型的回答（模型个数）",
        "right_answers": "回答",
        "weights": "头的权重",
        "right_heads": "头的选择",
        "unknown": "不认识的词或片段",
        "near": "接近度",
        "none": "都不是",
        "no_word": "无",
        "comma": "、",
        "right": "正确",
        "wrong": "错误",
        "some": "{right}/{runs} 正确",
    },
}

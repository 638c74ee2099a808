"""Names of measures, heads, languages and cue categories, and lists in sentences, in the language of the page.

Every function translates when it is called, since one process may write pages in two languages.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from anaphora.analysis.evidence.evidence import claim_groups, every_group
from anaphora.analysis.results.scores import Groups
from anaphora.base.translation import N_, _, pgettext, spoken_language

T = TypeVar("T")


def label(names: Mapping[str, str], name: str) -> str:
    """Return the label of `name` in the mapping `names`; a name that is missing there is its own label.

    Spaces and underscores in `name` are equivalent; a label made from the name has spaces.
    """
    return names.get(name) or names.get(name.replace(" ", "_")) or name.replace("_", " ")


def language_name(code: str) -> str:
    """Return the name of a language: "English" for "en"."""
    return language_names().get(code, code)


def group_label(code: str, kind: str) -> str:
    """Return the label of a language and a cue category: "English, role cues", or "English" if `kind` is "all"."""
    name = language_name(code)
    if kind == "all":
        return name
    return _("{spoken}, {kind}").format(spoken=name, kind=label(kind_names(), kind))


@dataclass(frozen=True)
class Group(Generic[T]):
    """Measurement on the items of one language and, unless `kind` is "all", of one cue category.

    In the category "role", who did what to whom decides the antecedent; in "set", gender, number or meaning does.
    """

    language: str
    kind: str
    cell: T

    @property
    def label(self) -> str:
        return group_label(self.language, self.kind)


def kind_groups(part: Groups[T] | None) -> Iterator[Group[T]]:
    """Yield the measurement on each language's cue categories ("set", "role"), or on all its items without any."""
    return (Group(language, kind, cell) for language, kind, cell in claim_groups(part))


def all_groups(part: Groups[T] | None) -> Iterator[Group[T]]:
    """Yield, for each language, the measurement on all items and then those on each cue category ("set", "role")."""
    return (Group(language, kind, cell) for language, kind, cell in every_group(part))


def head_name(layer: int, head: int | None = None) -> str:
    """Return the name of a head, "layer 2 head 1", or of a layer if `head` is None."""
    if head is None:
        return _("layer {layer}").format(layer=layer)
    return _("layer {layer} head {head}").format(layer=layer, head=head)


def heads_listed(heads: Sequence[tuple[int, int]]) -> str:
    """Return the names of heads, for use in a sentence: "layer 2 heads 0 and 3; layer 3 head 1"."""
    by_layer: dict[int, list[int]] = {}
    for layer, head in heads:
        by_layer.setdefault(layer, []).append(head)
    return clauses(
        [
            head_name(layer, numbers[0])
            if len(numbers) == 1
            else _("layer {layer} heads {heads}").format(layer=layer, heads=listed([str(number) for number in numbers]))
            for layer, numbers in by_layer.items()
        ]
    )


def value_label(value: str) -> str:
    """Return the label for a value of a factor (an attribute of items), such as "3–5" with an en dash for "3-5"."""
    ends = re.fullmatch(r"(\d+)-(\d+)", value)
    return _("{low}–{high}").format(low=ends[1], high=ends[2]) if ends else label(factor_value_names(), value)


def listed(parts: Sequence[str]) -> str:
    """Join parts into a list in a sentence: "a, b and c"."""
    if len(parts) == 1:
        return parts[0]
    return _("{before} and {last}").format(before=pgettext("list", ", ").join(parts[:-1]), last=parts[-1])


def joined_sentences(sentences: Sequence[str]) -> str:
    """Join sentences, with a space between them except in Chinese."""
    return ("" if spoken_language() == "zh" else " ").join(sentences)


def clauses(parts: Sequence[str]) -> str:
    """Join clauses with semicolons: "a; b"."""
    return _("; ").join(parts)


def translated(**messages: str) -> Callable[[], dict[str, str]]:
    """Return a function that returns the given messages, marked by `N_`, translated into the current language."""
    return lambda: {key: _(message) for key, message in messages.items()}


kind_names = translated(all=N_("all cues"), set=N_("set cues"), role=N_("role cues"))
short_measure_names = translated(
    task_accuracy=N_("task accuracy"),
    candidate_accuracy=N_("candidate accuracy"),
    quad_accuracy=N_("quads right"),
    antecedent_mass=N_("weight on the antecedent"),
    random_init=N_("untrained models"),
    chance=N_("chance"),
)
measure_names = translated(
    task_accuracy=N_("task accuracy"),
    candidate_accuracy=N_("candidate accuracy"),
    quad_accuracy=N_("quad accuracy"),
    minimal_pair_accuracy=N_("minimal-pair accuracy"),
    antecedent_mass=N_("weight on the antecedent"),
    lift=N_("lift"),
    chance=N_("chance"),
)
baseline_names = translated(
    chance=N_("chance among the cue’s candidates"),
    random_init=N_("untrained models, mean"),
    random_init_95=N_("untrained models, 95th percentile"),
    nearest=N_("nearest"),
    first=N_("first"),
    subject=N_("subject"),
    longest=N_("longest"),
    most_mentioned=N_("most mentioned"),
    best_offset=N_("best offset"),
    odd_one_out=N_("odd one out"),
    most_frequent=N_("most frequent"),
    entity_cue=N_("entity cue"),
    bag_of_words=N_("bag of words"),
    bag_with_interactions=N_("bag with interactions"),
    bag_by_place=N_("bag by position"),
    words=N_("words"),
    words_and_pairs=N_("words and pairs"),
)
map_names = translated(
    raw=N_("raw weight"),
    norm=N_("norm of weighted value"),
    rollout=N_("rollout"),
    flow=N_("flow"),
    value_zeroing=N_("value zeroing"),
    integrated_gradients=N_("integrated gradients"),
)
effect_names = translated(meaning=N_("meaning"), position=N_("position"), entity=N_("entity"))
control_names = translated(
    uniform=N_("uniform attention"),
    frozen_query_key=N_("query and key frozen"),
    shuffled_labels=N_("shuffled labels"),
    no_positions=N_("no positions"),
    masked_tokens=N_("masked tokens alone"),
    pairwise=N_("pairwise scorer"),
    nearest=N_("nearest candidate as label"),
)
scope_names = translated(
    head=N_("in the chosen head"),
    layer=N_("in its layer"),
    window=N_("in its layer ± 1"),
    all_layers=N_("in every head"),
)
edge_names = translated(
    gold=N_("antecedent"),
    value_zeroing=N_("antecedent, value only"),
    value_zeroing_others=N_("all others, value only"),
    distractor=N_("other candidate"),
    cue=N_("cue"),
    matched_query=N_("matched: another word’s edge"),
    matched_heads=N_("matched: other heads"),
    matched_distance=N_("matched: same distance"),
    gold_minus_matched=N_("antecedent − worst matched"),
)
split_names = translated(train=N_("train"), dev=N_("dev"), test=N_("test"))
head_choice_names = translated(
    dev=N_("chosen on the development split"), named=N_("named, not chosen on the development split")
)
"""Descriptions of how the head was chosen."""
factor_names = translated(
    stratum=N_("stratum"),
    type=N_("type"),
    gender=N_("gender"),
    number=N_("number"),
    distance=N_("distance (words)"),
    candidates=N_("candidates"),
    distractor=N_("distractor"),
    template=N_("template"),
    form=N_("form"),
    genre=N_("genre"),
    seen=N_("seen"),
)
factor_value_names = translated(
    set=N_("set"),
    role=N_("role"),
    winograd=N_("Winograd pairs"),
    binding=N_("reflexives (binding)"),
    third=N_("third person"),
    before=N_("before the event"),
    inside=N_("inside the event"),
    between=N_("between event and reason"),
    after=N_("at the end"),
    L0=N_("compositions: seen in both voices"),
    L1=N_("compositions: seen in the other voice only"),
    L2=N_("compositions: never seen together"),
    short_text=N_("short text"),
    cataphora=N_("pronoun first"),
    distractor_only=N_("names only ever distractors in training"),
    invented=N_("invented names"),
    selection=N_("selection"),
    gender=N_("gender"),
    number=N_("number"),
    animacy=N_("animacy"),
    causality=N_("causality"),
    voice=N_("voice"),
    reflexive=N_("reflexive"),
    ba_bei=N_("ba bei"),
    composition=N_("composition"),
    none=N_("none"),
    main=N_("main"),
    male=N_("male"),
    female=N_("female"),
    masculine=N_("masculine"),
    feminine=N_("feminine"),
    neuter=N_("neuter"),
    singular=N_("singular"),
    plural=N_("plural"),
    yes=N_("yes"),
    no=N_("no"),
    pronoun=N_("pronouns"),
    proper=N_("names"),
    nominal=N_("other nouns"),
    unknown=N_("unknown"),
    **{"12 or more": N_("12 or more"), "9 or more": N_("9 or more")},
)
language_names = translated(en=N_("English"), zh=N_("Chinese"))
level_names = translated(
    set=N_("set cues"),
    L0=N_("seen in both voices"),
    L1=N_("seen in the other voice only"),
    L2=N_("never seen together"),
    unseen_names=N_("names never seen"),
    short_text_L0=N_("short texts: seen in both voices"),
    short_text_L1=N_("short texts: seen in the other voice only"),
    short_text_L2=N_("short texts: never seen together"),
)
"""Names of composition levels; a level says in how many voices training had the item's predicate and state together."""
shortcut_names = translated(
    table_of_wordings=N_("table of wordings"),
    words_with_places=N_("words with positions"),
    pairs_with_places=N_("pairs with positions"),
    triples_with_places=N_("triples with positions"),
    boosted_trees=N_("boosted trees"),
    rule_model=N_("model of the rule"),
    words=N_("words"),
    pairs=N_("pairs"),
    triples=N_("triples"),
)
"""Names of the shortcut baselines for items of the cue type `composition`."""
mention_type_names = translated(
    all=N_("all mentions"),
    pronoun=N_("pronouns"),
    proper=N_("names"),
    nominal=N_("other nouns"),
    unknown=N_("part of speech unknown"),
)
selector_names = translated(
    nearest=N_("nearest mention"),
    head_match=N_("same head word, else nearest"),
    sieve=N_("sieve of rules"),
    words=N_("best head, any word of the text"),
    mentions=N_("best head, a mention before it"),
    preceding=N_("best head, a word before it"),
    one_words=N_("one head, any word of the text"),
    one_preceding=N_("one head, a word before it"),
    one_mentions=N_("one head, a mention before it"),
    untrained_words=N_("untrained, any word"),
    untrained_mentions=N_("untrained, a mention before it"),
    untrained_preceding=N_("untrained, a word before it"),
    paper_head=N_("one head of BERT-base"),
)
"""Names of the rules and heads that select antecedents."""
name_policy_names = translated(
    random=N_("guessing"),
    nearest=N_("nearer name"),
    first=N_("first name"),
    parallel_roles=N_("name in the pronoun’s role"),
    head=N_("chosen head"),
    head_with_threshold=N_("chosen head, or neither"),
    untrained=N_("untrained models"),
    answers=N_("the model’s answers"),
    best_head=N_("best head"),
    best_head_with_threshold=N_("best head, with threshold"),
    best_head_either_direction=N_("best head, either direction"),
    best_head_either_direction_with_threshold=N_("best head, either direction, with threshold"),
    probe_over_heads=N_("probe over heads"),
)
"""Names of what decides to which name a pronoun refers: rules, heads, the model's answers, and a probe."""
head_role_names = translated(
    positional=N_("positional"), special=N_("special"), cue=N_("cue"), antecedent=N_("antecedent")
)

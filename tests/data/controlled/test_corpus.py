from __future__ import annotations

import random
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, product
from statistics import fmean

import numpy as np
import pytest

from anaphora.analysis.scores.baselines.order_models import wordings_seen
from anaphora.base.errors import UserError
from anaphora.base.language import LANGUAGES
from anaphora.commands.corpus import corpus_table
from anaphora.data.controlled import corpus, lexicon, splits, templates
from anaphora.data.controlled.quads import QuadGenerator, QuadIdentity
from anaphora.data.controlled.rendering import NounPhrase, Sentence
from anaphora.data.controlled.templates import CueTypeContent, Scenario, Template
from anaphora.data.example import Example
from anaphora.data.offsets import cut_words
from anaphora.settings.cue_types import ALL_TYPES, ROLE_CUE_TYPES, SET_CUE_TYPES
from anaphora.settings.data import SPLITS, ControlledCorpus

SMALL = ControlledCorpus(train_items=3000, test_items=900)
POSSESSIVE = {"his", "her", "its", "their", "他的", "她的", "它的", "他们的", "她们的", "它们的"}


@pytest.fixture(scope="module")
def generated_splits() -> dict[str, list[Example]]:
    return corpus.generate(SMALL)


@pytest.fixture(scope="module")
def lexicons() -> dict[str, lexicon.Lexicon]:
    return {language: lexicon.load(language) for language in LANGUAGES}


def blocks(examples: Sequence[Example]) -> dict[str, list[Example]]:
    by_group: dict[str, list[Example]] = defaultdict(list)
    for example in examples:
        by_group[example.group].append(example)
    return by_group


def names(example: Example) -> list[str]:
    return [example.words(index) for index in range(len(example.candidates))]


def lemmas(words: lexicon.Lexicon) -> dict[str, str]:
    """Return the singular of each noun, by its singular and plural."""
    lemma_of = {}
    for nouns in words.nouns.values():
        for noun in nouns:
            lemma_of[noun.singular] = lemma_of[noun.plural] = noun.singular
    return lemma_of


def cue_pairs(examples: Sequence[Example], lexicons: Mapping[str, lexicon.Lexicon]) -> Iterator[tuple[str, ...]]:
    """Yield what training and test must not share: (language, type, cue or its form, candidate's lemma)."""
    singular = {language: lemmas(words) for language, words in lexicons.items()}
    for example in examples:
        kind = example.factors["type"]
        cue = example.factors["cue"]
        if kind in ("gender", "number", "animacy"):
            kind, cue = "agreement", "possessive" if cue in POSSESSIVE else "subject"
        elif example.factors["kind"] == "role":
            cue = "any"
        for name in names(example):
            yield (example.language, kind, cue, singular[example.language].get(name, name))


def test_no_pair_of_cue_and_candidate_is_shared_between_splits(
    generated_splits: dict[str, list[Example]], lexicons: dict[str, lexicon.Lexicon]
) -> None:
    plain = {
        split: [each for each in examples if each.factors["stratum"] in ("main", "cataphora")]
        for split, examples in generated_splits.items()
    }
    pairs = {split: set(cue_pairs(examples, lexicons)) for split, examples in plain.items()}
    everything = set(cue_pairs(generated_splits["train"], lexicons))
    assert min(map(len, pairs.values())) > 400
    assert not pairs["test"] & everything
    assert not pairs["dev"] & everything
    assert not pairs["test"] & pairs["dev"]


def test_the_nouns_tested_with_one_form_are_known_from_the_other(
    generated_splits: dict[str, list[Example]], lexicons: dict[str, lexicon.Lexicon]
) -> None:
    known = {
        (language, name)
        for language, kind, _, name in cue_pairs(generated_splits["train"], lexicons)
        if kind == "agreement"
    }
    tested = {
        (language, name)
        for language, kind, _, name in cue_pairs(generated_splits["test"], lexicons)
        if kind == "agreement"
    }
    assert len(tested) > 80
    assert tested <= known


def test_a_noun_shares_its_hold_out_with_its_plural(lexicons: dict[str, lexicon.Lexicon]) -> None:
    words = splits.assign_cosets(lexicons["en"], 0, 0.2)
    for split in ("train", "dev", "test"):
        chosen = words.agreement_nouns("thing", ("he",), split)
        assert chosen
        assert all(noun.plural != noun.singular for noun in chosen)
    held = {split: set(words.agreement_nouns("thing", ("he",), split)) for split in ("train", "dev", "test")}
    assert not held["train"] & held["test"] and not held["train"] & held["dev"] and not held["dev"] & held["test"]
    assert not set(words.agreement_nouns("thing", ("he", "his"), "train")) & held["test"]


def test_more_shared_nouns_leave_less_to_hold_out_and_the_hold_out_whole(lexicons: dict[str, lexicon.Lexicon]) -> None:
    groups = {share: splits.assign_cosets(lexicons["zh"], 0, share).agreement["male"] for share in (0.1, 0.2, 0.6)}
    nouns = {noun for group in groups[0.2] for noun in group}
    for share, dealt in groups.items():
        assert len(dealt[-1]) == round(share * len(nouns))
        assert sum(map(len, dealt)) == len(nouns) == len({noun for group in dealt for noun in group})
    for place in range(4):
        assert set(groups[0.6][place]) < set(groups[0.2][place]) < set(groups[0.1][place])
    generated_splits = corpus.generate(
        ControlledCorpus(train_items=3000, test_items=200, types=["gender", "number"], shared_nouns=0.6)
    )
    trained, tested = (set(cue_pairs(generated_splits[split], lexicons)) for split in ("train", "test"))
    assert trained and tested and not trained & tested


@pytest.mark.parametrize("share", [0.0, 0.81])
def test_a_share_of_nouns_that_leaves_nothing_is_refused(share: float) -> None:
    with pytest.raises(UserError, match=rf"data.shared_nouns \({share}\) must be from 0.1"):
        ControlledCorpus(shared_nouns=share)


def test_templates_texts_groups_and_minimal_pairs_belong_to_one_split(
    generated_splits: dict[str, list[Example]],
) -> None:
    owners = defaultdict(set)
    for split, examples in generated_splits.items():
        for example in examples:
            for value in (example.factors["template"], example.text, example.group, example.minimal_pair):
                owners[value].add(split)
    assert all(len(splits_of) == 1 for splits_of in owners.values())


def test_no_text_stands_twice_but_for_its_two_pronouns(generated_splits: dict[str, list[Example]]) -> None:
    examples = [example for split in generated_splits.values() for example in split]
    assert len({(example.text, example.pronoun) for example in examples}) == len(examples)
    owners = defaultdict(set)
    for example in examples:
        owners[example.text].add(example.group)
    assert all(len(groups) == 1 for groups in owners.values())


def test_filler_only_names_are_distractors_in_training_and_candidates_in_their_stratum(
    generated_splits: dict[str, list[Example]], lexicons: dict[str, lexicon.Lexicon]
) -> None:
    for language, words in lexicons.items():
        fillers = {name for gender in words.names.values() for name in gender[-lexicon.DISTRACTOR_ONLY_NAMES :]}
        known_names = set()
        for split, examples in generated_splits.items():
            for example in (each for each in examples if each.language == language):
                focal = {example.words(index) for index in example.focal} & fillers
                known_names |= set(names(example)) & fillers if split == "train" else set()
                assert bool(focal) == (example.factors["stratum"] == "distractor_only")
        assert len(known_names) > lexicon.DISTRACTOR_ONLY_NAMES  # of both genders


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_form_of_a_binding_template_gives_no_place(language: str) -> None:
    content = templates.load(language, "binding")
    for split in SPLITS:
        texts = [" ".join(each.tokens) for each in content.of(split, cataphora=False)]
        clause_mate_first = sum(text.index("{B}") < text.index("{A}") for text in texts)
        assert 2 * clause_mate_first == len(texts) >= 8


def test_items_that_name_no_cue_have_no_table_of_wordings() -> None:
    splits = corpus.generate(ControlledCorpus(train_items=400, test_items=200, types=["voice"]))
    cueless = {
        name: [
            replace(one, factors={factor: value for factor, value in one.factors.items() if factor != "cue"})
            for one in split
        ]
        for name, split in splits.items()
    }
    assert np.isfinite(wordings_seen(splits["train"], splits["test"])).any()
    assert np.isnan(wordings_seen(cueless["train"], cueless["test"])).all()


def test_a_table_of_wordings_answers_reflexives_and_no_bindings() -> None:
    splits = corpus.generate(ControlledCorpus(train_items=4_000, test_items=2_000, types=["reflexive", "binding"]))
    right = wordings_seen(splits["train"], splits["test"])
    by_type = {
        kind: [
            float(value)
            for value, example in zip(right, splits["test"], strict=True)
            if (example.factors["type"], example.factors["stratum"]) == (kind, "main")
        ]
        for kind in ("reflexive", "binding")
    }
    assert fmean(by_type["reflexive"]) == 1
    assert 0.4 < fmean(by_type["binding"]) < 0.6


def test_invented_names_of_test_are_nowhere_in_training(generated_splits: dict[str, list[Example]]) -> None:
    for language in LANGUAGES:
        text = "\n".join(example.text for example in generated_splits["train"] if example.language == language)
        tested = [
            each
            for each in generated_splits["test"]
            if (each.language, each.factors["stratum"]) == (language, "invented")
        ]
        invented = {example.words(index) for example in tested for index in example.focal}
        assert len(invented) > 20
        assert not [name for name in invented if name in text]
        training = [each for each in generated_splits["train"] if each.factors["stratum"] == "invented"]
        assert {example.factors["kind"] for example in training} == {"role"}


def test_every_block_is_complete(generated_splits: dict[str, list[Example]]) -> None:
    for block in (block for examples in generated_splits.values() for block in blocks(examples).values()):
        first = block[0]
        count = len(first.focal)
        pronouns = int(first.factors.get("pronouns", "1"))
        assert len(block) == pronouns * count * count
        assert {example.factors["order"] for example in block} == {str(order) for order in range(count)}
        assert len({example.factors["template"] for example in block}) == 1
        assert len({frozenset(names(example)) for example in block}) == 1
        for which in range(pronouns):
            cells = [example for example in block if example.minimal_pair.endswith(f"/{which}")]
            # Every candidate is meant in every order, and every cue picks the same candidate in all orders.
            meant = {(each.factors["order"], each.words(each.antecedents[0])) for each in cells}
            assert len(meant) == len(cells) == count * count
            if first.factors["kind"] == "set":
                assert len({(each.factors["cue"], each.words(each.antecedents[0])) for each in cells}) == count


def test_whoever_looks_at_position_or_entity_alone_is_right_in_one_of_m(
    generated_splits: dict[str, list[Example]],
) -> None:
    for block in (block for examples in generated_splits.values() for block in blocks(examples).values()):
        right: dict[tuple[str, object], int] = defaultdict(int)
        for example in block:
            for place, index in enumerate(example.focal):
                right["place", place] += index in example.antecedents
                right["entity", example.words(index)] += index in example.antecedents
        share = len(block) / len(block[0].focal)
        assert all(count == share for count in right.values())


def test_minimal_pairs_differ_in_cue_and_answer_alone(generated_splits: dict[str, list[Example]]) -> None:
    by_pair = defaultdict(list)
    for example in generated_splits["test"]:
        by_pair[example.minimal_pair].append(example)
    for group in by_pair.values():
        assert len(group) == len(group[0].focal)
        assert len({tuple(names(example)) for example in group}) == 1
        assert len({example.antecedents for example in group}) == len(group)
        assert len({example.factors["order"] for example in group}) == 1


def test_spans_cut_the_right_words_in_both_languages(
    generated_splits: dict[str, list[Example]], lexicons: dict[str, lexicon.Lexicon]
) -> None:
    for language, words in lexicons.items():
        nouns = set(lemmas(words))
        people = {name for gender in words.names.values() for name in gender}
        pronoun_forms = {form for forms in lexicon.PRONOUNS[language].values() for form in forms}
        for example in (each for each in generated_splits["test"] if each.language == language):
            assert example.text[slice(*example.pronoun)].lower() in pronoun_forms
            if example.factors["kind"] == "set":
                assert nouns >= set(names(example))
            elif example.factors["stratum"] == "main":
                assert people >= set(names(example))
            if example.factors["type"] == "selection":
                assert example.factors["cue"] in example.text
            if example.factors["type"] in ("gender", "number", "animacy"):
                assert example.text[slice(*example.pronoun)].lower() == example.factors["cue"]


def test_texts_are_tidy(generated_splits: dict[str, list[Example]]) -> None:
    for example in (example for examples in generated_splits.values() for example in examples):
        assert "{" not in example.text and example.text == example.text.strip()
        if example.language == "en":
            assert "  " not in example.text and " ," not in example.text and " ." not in example.text
            assert example.text[0].isupper()
        else:
            assert " " not in example.text
        assert not any(left + right in example.text for left, right in product(",，.。;；:：", ",，.。"))


def test_every_stratum_and_type_has_its_items(generated_splits: dict[str, list[Example]]) -> None:
    count: dict[tuple[str, ...], int] = defaultdict(int)
    for split, examples in generated_splits.items():
        for example in examples:
            factors = example.factors
            count[split, example.language, factors["stratum"]] += 1
            count[split, example.language, factors["stratum"], factors["type"]] += 1
            count[split, example.language, "kind", factors["kind"]] += 1
    for language in LANGUAGES:
        types = (*SET_CUE_TYPES, *ROLE_CUE_TYPES[language])
        assert sum(count["train", language, "kind", kind] for kind in ("set", "role")) >= SMALL.train_items
        assert abs(count["train", language, "kind", "set"] - count["train", language, "kind", "role"]) < 200
        for split in ("dev", "test"):
            assert count[split, language, "main"] >= SMALL.test_items
            assert count[split, language, "cataphora"] >= SMALL.test_items / 10
            least = SMALL.test_items / len(types)
            assert all(least <= count[split, language, "main", kind] <= least + 40 for kind in types)
        for stratum in ("distractor_only", "invented"):
            assert count["test", language, stratum] >= SMALL.test_items / 10
        assert not count["train", language, "distractor_only"] and not count["dev", language, "distractor_only"]


def test_distances_span_from_none_to_thirty_words(generated_splits: dict[str, list[Example]]) -> None:
    for language in LANGUAGES:
        distances = {int(each.factors["distance"]) for each in generated_splits["train"] if each.language == language}
        assert min(distances) == 0
        assert max(distances) >= 25


def test_the_pronoun_precedes_the_candidates_in_cataphora_alone(generated_splits: dict[str, list[Example]]) -> None:
    for example in (example for examples in generated_splits.values() for example in examples):
        last = max(example.candidates[index][-1][0] for index in example.focal)
        assert (example.pronoun[0] < last) == (example.factors["stratum"] == "cataphora")


@pytest.mark.parametrize(
    ("language", "kind", "sizes"),
    [
        ("en", "selection", {2, 3, 4, 5, 6}),
        ("en", "gender", {2}),
        ("en", "animacy", {2, 3}),
        ("en", "number", {2, 3, 4}),
        ("zh", "number", {2, 3, 4, 5, 6}),
    ],
)
def test_lists_have_every_size_of_their_type_and_pairs_have_two(language: str, kind: str, sizes: set[int]) -> None:
    words = lexicon.load(language)
    source = QuadGenerator(words, splits.assign_cosets(words, 0, 0.2))
    frames = templates.load(language, kind)
    place = QuadIdentity(language=language, split="train", stratum="main", group="g")
    chance = random.Random(0)
    plain = frames.of("train", cataphora=False)
    listing = next(template for template in plain if "list" in template.slots and len(template.forms) == 1)
    pair = next(template for template in plain if "A" in template.slots)
    quads = [source.set_quad(frames, listing, place, chance) for _ in range(600)]
    assert {len(block[0].candidates) for block in quads} == sizes
    assert all(len(block) == len(block[0].candidates) ** 2 for block in quads)
    assert {len(source.set_quad(frames, pair, place, chance)[0].candidates) for _ in range(50)} == {2}


def test_every_example_passes_the_checks_and_no_span_cuts_a_word() -> None:
    made = corpus.generate(ControlledCorpus(types=list(ALL_TYPES), train_items=1000, test_items=600))
    for example in chain(*made.values()):
        assert replace(example) == example  # `replace` checks it, generation does not
        assert cut_words(example.text, example.spans) == []


def test_names_are_drawn_as_from_a_search_through_all_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    words = lexicon.load("en")
    holdout = splits.assign_cosets(words, 0, 0.2)
    fast, plain = QuadGenerator(words, holdout), QuadGenerator(words, holdout)

    def search(names: Sequence[str], without: Sequence[str], split: str, chance: random.Random) -> str:
        return plain._draw([name for name in names if name not in without], split, chance)

    monkeypatch.setattr(plain, "_draw_name", search)
    pools = [list("abcdefg"), list("bcd"), list("gxyz"), list("ab")]
    chances = random.Random(1), random.Random(1)
    for number in range(500):
        people, others = pools[number * number % 4], pools[number % 3] if number % 5 else []
        drawn = [one.draw_names(people, others, "train", by) for one, by in zip((fast, plain), chances, strict=True)]
        assert drawn[0] == drawn[1]
    assert chances[0].getstate() == chances[1].getstate()


def test_more_asides_lengthen_the_test_split_alone() -> None:
    usual, longer = (
        corpus.generate(ControlledCorpus(train_items=60, test_items=60, test_asides=asides)) for asides in (3, 12)
    )
    assert usual["train"] == longer["train"]
    assert usual["dev"] == longer["dev"]
    farthest = [
        max(int(one.factors["distance"]) for one in generated_splits["test"]) for generated_splits in (usual, longer)
    ]
    assert farthest[1] > 1.5 * farthest[0]


@pytest.mark.parametrize(
    ("asides", "message"), [(2, "must be at least 3"), (99, r"test_asides \(99\) must be at most")]
)
def test_asides_that_cannot_be_had_are_reported(asides: int, message: str) -> None:
    with pytest.raises(UserError, match=message):
        corpus.generate(ControlledCorpus(train_items=10, test_items=10, test_asides=asides))


def test_number_sets_hold_both_numbers(generated_splits: dict[str, list[Example]]) -> None:
    for block in blocks(generated_splits["train"]).values():
        if block[0].factors["type"] == "number":
            assert {example.factors["number"] for example in block} == {"singular", "plural"}


def test_the_seed_decides_everything() -> None:
    first, again, other = (
        corpus.generate(ControlledCorpus(train_items=200, test_items=100, seed=seed)) for seed in (0, 0, 1)
    )
    assert first == again
    texts = {example.text for example in first["test"]}
    assert len(texts & {example.text for example in other["test"]}) < 0.1 * len(texts)


def test_a_language_is_the_same_with_and_without_the_other(generated_splits: dict[str, list[Example]]) -> None:
    alone = corpus.generate(
        ControlledCorpus(languages=["zh"], train_items=SMALL.train_items, test_items=SMALL.test_items)
    )
    for split, examples in alone.items():
        both = {(each.text, each.pronoun) for each in generated_splits[split] if each.language == "zh"}
        assert {(each.text, each.pronoun) for each in examples} == both


def test_types_of_cue_that_are_named_are_the_only_ones_and_share_all_items() -> None:
    generated = corpus.generate(ControlledCorpus(train_items=400, test_items=60, types=["gender", "number", "ba_bei"]))
    for split, examples in generated.items():
        kinds = {
            language: {one.factors["type"] for one in examples if one.language == language} for language in LANGUAGES
        }
        assert kinds == {"en": {"gender", "number"}, "zh": {"gender", "number", "ba_bei"}}, split
    for language in LANGUAGES:
        count = sum(one.language == language for one in generated["train"])
        assert 400 <= count < 440


@pytest.mark.parametrize(
    ("types", "message"),
    [
        (["ba_bei"], r"data.types \(\['ba_bei'\]\) must name at least one of .* for en"),
        (["gander"], "one of selection"),
    ],
)
def test_types_that_are_not_there_are_refused(types: list[str], message: str) -> None:
    with pytest.raises(UserError, match=message):
        ControlledCorpus(types=types)


def test_generation_is_fast() -> None:
    start = time.process_time()
    corpus.generate(ControlledCorpus(train_items=2000, test_items=500))
    assert time.process_time() - start < 3  # seconds, for a twelfth of the whole corpus


def test_the_words_for_the_tokenizer_hold_every_candidate_and_pronoun(
    generated_splits: dict[str, list[Example]],
) -> None:
    for language in LANGUAGES:
        known = {word.lower() for word in corpus.words(language)}
        for example in generated_splits["train"]:
            if example.language == language and example.factors["stratum"] != "invented":
                assert {name.lower() for name in names(example)} <= known
                assert example.text[slice(*example.pronoun)].lower() in known


def test_the_table_counts_every_item(generated_splits: dict[str, list[Example]]) -> None:
    rows = corpus_table(generated_splits)
    assert sum(int(str(row["items"])) for row in rows) == sum(map(len, generated_splits.values()))
    gender = next(row for row in rows if (row["language"], row["type"], row["split"]) == ("en", "gender", "test"))
    assert gender["chance"] == 0.5


def test_the_table_leaves_a_distance_out_that_is_no_number() -> None:
    items = [
        Example(text="A, it", language="en", pronoun=(3, 5), candidates=(((0, 1),),), antecedents=(0,), factors=factors)
        for factors in ({"distance": "far"}, {"distance": "4"}, {})
    ]
    (row,) = corpus_table({"test": items})
    assert (row["items"], row["mean_distance"], row["largest_distance"]) == (3, 4, 4)


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_content_is_large_enough(language: str) -> None:
    words = lexicon.load(language)
    assert (len(words.intro), len(words.gap), len(words.aside), len(words.syllables)) >= (30, 40, 30, 40)
    assert all(len(nouns) >= 45 for nouns in words.nouns.values())
    assert all(len(cues) >= 20 for cues in words.predicates.values())
    assert all(len(people) >= 55 for people in words.names.values())
    for kind in (*SET_CUE_TYPES, *ROLE_CUE_TYPES[language]):
        content = templates.load(language, kind)
        sizes = [len(content.of(split, cataphora=False)) for split in ("train", "dev", "test")]
        assert all(size >= least for size, least in zip(sizes, (18, 5, 9), strict=True)), (kind, sizes)


def test_content_that_is_used_up_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = Scenario(
        name="0", shared={"state": ("left",)}, first={"event": ("{A} saw {B}",)}, second={"event": ("{A} met {B}",)}
    )
    frames = tuple(
        Template(name=split, split=split, cataphora=False, tokens=("{event}", "since", "{he}", "{state}", stop))
        for split, stop in zip(SPLITS, ".!?", strict=True)
    )
    content = CueTypeContent(type="causality", templates=frames, scenarios=(scenario,))
    monkeypatch.setattr(templates, "load", lambda language, kind: content)
    settings = ControlledCorpus(languages=["en"], types=["causality"], train_items=50, test_items=1000)
    with pytest.raises(UserError, match=r"english/causality.toml: after \d+ dev items \(main\) 200 draws gave no new"):
        corpus.generate(settings)


@pytest.mark.parametrize(
    ("text", "gap", "expected"),
    [
        ("it fell {gap} because of rain .", "one day", "it fell , one day , because of rain ."),
        ("it fell {gap} because of rain .", "", "it fell because of rain ."),
        ("it fell {gap} .", "one day", "it fell , one day ."),
        ("it fell {gap} ; it rained .", "one day", "it fell , one day ; it rained ."),
        ("it fell , {gap} it rained .", "one day", "it fell , one day , it rained ."),
        ("it fell . {gap} it rained .", "one day", "it fell . one day , it rained ."),
        ("{gap} it fell .", "one day", "one day , it fell ."),
    ],
)
def test_a_gap_brings_its_commas_and_no_mark_too_many(text: str, gap: str, expected: str) -> None:
    filled = templates.fill_pools(text.split(), {"intro": "", "gap": gap, "aside": ""}, "en")
    assert " ".join(filled) == expected


def test_writing_joins_as_each_language_does() -> None:
    tokens = ["so", "{p0}", "left", ".", "{0}", ",", "{1}", "and", "I", "?"]
    english = Sentence(tokens, "en").render([NounPhrase("cup", "the"), NounPhrase("Ann")], ["he"])
    assert english.text == "So he left. The cup, Ann and I?"
    assert [english.text[slice(*spans[0])] for spans in english.slot_spans] == ["cup", "Ann"]
    assert (english.pronoun_words, english.slot_words) == ((2,), ((5,), (6,)))
    tokens = ["{0}", "和", "{1}", "，", "{p0}", "走", "了", "。"]
    chinese = Sentence(tokens, "zh").render([NounPhrase("灯", "那 盏"), NounPhrase("猫")], ["它"])
    assert chinese.text == "那盏灯和猫，它走了。"
    assert [chinese.text[slice(*spans[0])] for spans in chinese.slot_spans] == ["灯", "猫"]


def test_wrong_settings_are_refused_in_the_users_words() -> None:
    with pytest.raises(UserError, match=r"data.languages \('de'\)"):
        ControlledCorpus(languages=["de"])
    with pytest.raises(UserError, match=r"data.languages .* at least one"):
        ControlledCorpus(languages=[])
    with pytest.raises(UserError, match=r"data.train_items \(0\) must be at least 1"):
        ControlledCorpus(train_items=0)
    with pytest.raises(UserError, match=r"data.seed \(-1\)"):
        ControlledCorpus(seed=-1)

"""Tests with published values: worked examples of papers, and test cases of the reference scorer."""

from __future__ import annotations

from fractions import Fraction

import pytest

from anaphora.analysis.scores.coreference import coreference_scores


def clusters(written: str) -> list[set[str]]:
    """Parse clusters written as "a bc def", with one letter per mention."""
    return [set(cluster) for cluster in written.split()]


ABC = "a bc def"
MUC_PAPER = "12345 67 89ABC"
CASES = [  # key, response, measure, recall, precision
    ("abc defg", "ab cd fghi", "muc", "2/5", "2/5"),  # Pradhan et al. 2014, section 4
    ("abc defg", "ab cd fghi", "b_cubed", "35/84", "1/2"),
    ("abc defg", "ab cd fghi", "ceaf_m", "4/7", "4/8"),
    ("abc defg", "ab cd fghi", "ceaf_e", "13/20", "13/30"),
    ("abc defg", "ab cd fghi", "lea", "5/21", "1/3"),  # Moosavi and Strube 2016, section 4
    (ABC, ABC, "lea", "1", "1"),  # the reference scorer's test cases, A to N
    (ABC, "a de", "muc", "1/3", "1"),
    (ABC, "a de", "b_cubed", "7/18", "1"),
    (ABC, "a de", "ceaf_m", "1/2", "1"),
    (ABC, "a de", "ceaf_e", "3/5", "9/10"),
    (ABC, "a de", "lea", "1/3", "1"),
    (ABC, "a bcx defy z", "muc", "1", "3/5"),
    (ABC, "a bcx defy z", "b_cubed", "1", "55/108"),
    (ABC, "a bcx defy z", "ceaf_m", "1", "2/3"),
    (ABC, "a bcx defy z", "ceaf_e", "31/35", "93/140"),
    (ABC, "a bcx defy z", "lea", "1", "4/9"),
    (ABC, "a bcx dy z", "muc", "1/3", "1/3"),
    (ABC, "a bcx dy z", "b_cubed", "5/9", "17/42"),
    (ABC, "a bcx dy z", "ceaf_m", "4/6", "4/7"),
    (ABC, "a bcx dy z", "ceaf_e", "11/15", "11/20"),
    (ABC, "a bcx dy z", "lea", "1/2", "2/7"),
    (ABC, "a bcxB dy z", "b_cubed", "5/9", "5/16"),
    (ABC, "a bcxB dy z", "ceaf_e", "31/45", "31/60"),
    (ABC, "a bcxB dy z", "lea", "1/2", "5/24"),
    (ABC, "a bcx dy Bz", "muc", "1/3", "1/4"),
    (ABC, "a bcx dy Bz", "lea", "1/2", "1/4"),
    (ABC, "a b c d e f", "muc", "0", "0"),
    (ABC, "a b c d e f", "b_cubed", "1/2", "1"),
    (ABC, "a b c d e f", "lea", "1/6", "1/6"),
    (ABC, "abcdef", "muc", "1", "3/5"),
    (ABC, "abcdef", "b_cubed", "1", "7/18"),
    (ABC, "abcdef", "lea", "5/6", "4/15"),
    (ABC, "a x y c d e z", "b_cubed", "13/36", "4/7"),
    (ABC, "a x y c d e z", "lea", "1/6", "1/7"),
    (ABC, "axycdez", "muc", "1/3", "1/6"),
    (ABC, "axycdez", "b_cubed", "17/36", "6/49"),
    (ABC, "axycdez", "lea", "1/6", "1/21"),
    ("ab cde", "bcx de", "lea", "1/5", "2/5"),
    ("ab cde fg", "bcx de fg", "lea", "3/7", "4/7"),
    (MUC_PAPER, "12345 6789ABC", "muc", "1", "9/10"),
    (MUC_PAPER, "12345 6789ABC", "b_cubed", "1", "16/21"),
    (MUC_PAPER, "12345 6789ABC", "lea", "1", "13/18"),
    (MUC_PAPER, "1234589ABC 67", "b_cubed", "1", "7/12"),
    (MUC_PAPER, "1234589ABC 67", "lea", "1", "29/54"),
    ("ABCD", "AB CD", "muc", "2/3", "1"),
    ("ABCD", "AB CD", "lea", "1/3", "1"),
    ("AB CD", "ABCD", "lea", "1", "1/3"),
    ("ABC", "AC", "muc", "1/2", "1"),
    ("ABC", "AC", "lea", "1/3", "1"),
    ("BCDEGHJ", "ABC DEF GHI", "muc", "3/6", "3/6"),
    ("BCDEGHJ", "ABC DEF GHI", "lea", "1/7", "1/3"),
    ("ABC DEFG", "AB CD FGH", "muc", "2/5", "2/4"),
    ("ABC DEFG", "AB CD FGH", "lea", "5/21", "3/7"),
    ("abcdef", "a b c d e f", "lea", "0", "0"),
    ("abcdef", "ab cde f", "lea", "4/15", "5/6"),
    ("abcdef", "abcxyz", "lea", "1/5", "1/5"),
    ("a b c d e f", "a b c d e f", "ceaf_e", "1", "1"),
    ("a b c d e f", "a b c d e f", "lea", "1", "1"),
    ("a b c d e f", "a b c d e f", "muc", "0", "0"),
    ("a b c d e f", "ab cde f", "lea", "1/6", "1/6"),
    ("a b c d e f", "a b c x y z", "lea", "1/2", "1/2"),
]


@pytest.mark.parametrize(("key", "response", "measure", "recall", "precision"), CASES)
def test_scores_are_those_of_the_reference_scorer(
    key: str, response: str, measure: str, recall: str, precision: str
) -> None:
    scores = getattr(coreference_scores([(clusters(key), clusters(response))]), measure)
    assert scores.recall == pytest.approx(float(Fraction(recall)))
    assert scores.precision == pytest.approx(float(Fraction(precision)))
    back = getattr(coreference_scores([(clusters(response), clusters(key))]), measure)
    assert (back.recall, back.precision) == (scores.precision, scores.recall)


@pytest.mark.parametrize(
    ("response", "muc", "b_cubed", "ceaf_m", "ceaf_e"),
    [
        ("12345 6789ABC", 0.947, 0.865, 0.833, 0.733),
        ("1234589ABC 67", 0.947, 0.737, 0.583, 0.667),
        ("123456789ABC", 0.900, 0.545, 0.417, 0.294),
        ("1 2 3 4 5 6 7 8 9 A B C", 0, 0.400, 0.250, 0.178),
    ],
)
def test_f1_is_that_of_luo_2005(response: str, muc: float, b_cubed: float, ceaf_m: float, ceaf_e: float) -> None:
    scores = coreference_scores([(clusters(MUC_PAPER), clusters(response))])
    of_measures = (scores.muc.f1, scores.b_cubed.f1, scores.ceaf_m.f1, scores.ceaf_e.f1)
    assert of_measures == pytest.approx((muc, b_cubed, ceaf_m, ceaf_e), abs=0.0005)
    assert scores.conll == pytest.approx((scores.muc.f1 + scores.b_cubed.f1 + scores.ceaf_e.f1) / 3)


def test_documents_are_summed_and_their_mentions_kept_apart() -> None:
    """Both documents have the same mentions {a b}: with an empty response, then with an equal one."""
    scores = coreference_scores([(clusters("ab"), []), (clusters("ab"), clusters("ab"))])
    for measure in (scores.muc, scores.b_cubed, scores.ceaf_m, scores.ceaf_e, scores.lea):
        assert (measure.recall, measure.precision) == (0.5, 1)
    empty = coreference_scores([])
    assert (empty.conll, empty.lea.f1) == (0, 0)

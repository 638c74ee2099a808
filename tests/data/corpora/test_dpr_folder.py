from __future__ import annotations

from pathlib import Path

import pytest
from readings import pairs_in_one_split

from anaphora.base.errors import UserError
from anaphora.data.corpora import dpr
from anaphora.settings.data import Dpr

BLOCK = "Maud met Ida as she {}.\nshe\nMaud,Ida\n{}\n\n"


def test_the_test_file_of_a_folder_is_the_test_split_and_its_minimal_pairs_are_its_own(tmp_path: Path) -> None:
    train = "".join(
        BLOCK.format(f"{verb} {number}", name) for number in range(10) for verb, name in (("ran", "Maud"),) * 2
    )
    (tmp_path / "train.c.txt").write_text(train)
    (tmp_path / "test.c.txt").write_text(BLOCK.format("left", "Maud") + BLOCK.format("came", "Ida"))
    splits, report = dpr.read(Dpr(path=str(tmp_path), dev_share=0.2))
    assert {name: len(examples) for name, examples in splits.items()} == {"train": 16, "dev": 4, "test": 2}
    assert report.rows == 22
    assert pairs_in_one_split(splits)


def test_a_folder_without_a_training_file_and_more_than_two_candidates_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"the folder has no train\.c\.txt"):
        dpr.read(Dpr(path=str(tmp_path)))
    path = tmp_path / "train.c.txt"
    path.write_text("Maud met Ida and Eve as she ran.\nshe\nMaud,Ida,Eve\nIda\n")
    with pytest.raises(UserError, match=r"line 1, candidates: \['Maud', 'Ida', 'Eve'\] must be two"):
        dpr.read(Dpr(path=str(path)))

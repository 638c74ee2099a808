"""What a notebook needs: open a run or any model of `transformers`, look at a sentence, read a row, draw it.

maps = anaphora.attention("hf://google-bert/bert-base-uncased", "Anna helped Emma because she was weak.")
maps.rank("she", "Anna")[:3]  # the heads in which "she" attends to "Anna" most
maps.page().open()

run = anaphora.load("outputs/demo")  # a run of one's own, with the head that development chose
run.attention("Anna was rescued by Emma because she was weak.").row("she").top(3)
"""

from __future__ import annotations

from anaphora.api.html import AttentionPage
from anaphora.api.maps import SentenceAttention
from anaphora.api.models import attention
from anaphora.api.row import Row
from anaphora.api.runs import OpenRun, load
from anaphora.api.scoring import Scores, score

__all__ = ["AttentionPage", "OpenRun", "Row", "Scores", "SentenceAttention", "attention", "load", "score"]

"""The loop of AlphaGo Zero by Gumbel's searches, as the recipes of small boards have it."""

from dataclasses import replace

import numpy as np

from engine.records.search_rows import join_rows, read_search_rows, targets
from engine.zero.loop import ROWS
from tests.zero.runs import CONFIG, run


def test_a_run_learns_from_policies_that_tell_of_moves_not_looked_at_too(tmp_path):
    config = replace(CONFIG, play=replace(CONFIG.play, candidates=4, full_share=1.0))
    zero = run(tmp_path, config, turns=2)
    assert zero.turn.number == 2 and zero.learner.step > 0
    rows = join_rows([read_search_rows(path) for path in sorted((tmp_path / ROWS).glob("rows-*.npz.xz"))])
    learnt = (targets(rows, np.arange(len(rows.game))) > 0).sum(axis=1)
    assert learnt[rows.ply == 0].mean() > 4

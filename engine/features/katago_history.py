"""How much of a game's course KataGo's input features show, and what a pass would do.

An *alternating run* is the moves up to the current position in which the two sides alternate. As in KataGo, a side that
moves twice, or out of turn, begins a new one, before which nothing counts here. (What the rules themselves keep, such
as positions that must not recur, is not forgotten.) A game is *over* for KataGo after the n-th move of its run if

* the last two moves were passes, one that took the button not counted;
* under simple ko, the last move was a pass and its player had passed in the same position before; or
* under simple ko, the position has come for the third time since the latest pass.

If the game is played on nevertheless, moves from before its end no longer show; nor does any at a position whose
course is hidden (:func:`engine.go.position.hide_course`).

Source: KataGo, ``fillRowV7`` and ``BoardHistory``.
"""

from engine.go.geometry import PASS
from engine.go.position import META_BARE_AT, META_N_MOVES, META_SEEN_FROM, META_TO_MOVE
from engine.go.rules import KO_SIMPLE, RULE_FRIENDLY_PASS, RULE_KO, RULE_SCORING, SCORING_AREA
from engine.system.jit import kernel

MOST_SHOWN = 5


@kernel
def course(position):
    """What shows of the game's course.

    Where friendly passing is part of area rules, a pass that would end the game is taken not to, and nothing shows.

    Returns:
        tuple of int and bool: moves shown, 0 to MOST_SHOWN, and whether a pass would end the game as far as the
        network is to know.
    """
    rules, n = position.rules, position.meta[META_N_MOVES]
    first = _run_start(position)
    counts_from = max(first, position.meta[META_SEEN_FROM])
    passes = _passes(position, counts_from, n)
    again = _passed_here_before(position, counts_from, n)
    ends = passes >= 1 or again
    if passes == 1 and not again and rules[RULE_FRIENDLY_PASS] == 1 and rules[RULE_SCORING] == SCORING_AREA:
        return 0, False
    shown = MOST_SHOWN
    for back in range(MOST_SHOWN - 1):
        if n - back > first and _is_over(position, counts_from, n - back):
            shown = 1 + back
            break
    return (0 if n == position.meta[META_BARE_AT] else min(shown, n - first)), ends


@kernel
def _run_start(position):
    """The first move of the alternating run; the number of moves if the side to move made the last one."""
    n, color = position.meta[META_N_MOVES], position.meta[META_TO_MOVE]
    first = n
    while first > 0 and position.colors[first - 1] != color:
        first -= 1
        color = 3 - color
    return first


@kernel
def _passes(position, counts_from, n):
    """Passes that end the first n moves."""
    passes = 0
    while n - passes > counts_from and position.moves[n - passes - 1] == PASS:
        passes += 1
    return passes


@kernel
def _passed_here_before(position, counts_from, n):
    """Under simple ko: whether the side to move after n moves has passed in that position before."""
    if position.rules[RULE_KO] != KO_SIMPLE:
        return False
    for before in range(n - 2, counts_from - 1, -2):
        if position.moves[before] == PASS and position.hashes[before] == position.hashes[n]:
            return True
    return False


@kernel
def _is_over(position, counts_from, n):
    """Whether the game is over after its first n moves, at least one."""
    if position.moves[n - 1] == PASS:
        return _passes(position, counts_from, n) >= 2 or (
            n > counts_from and _passed_here_before(position, counts_from, n - 1)
        )
    if position.rules[RULE_KO] != KO_SIMPLE:
        return False
    times, before = 1, n
    while before - 2 >= counts_from and position.moves[before - 1] != PASS and position.moves[before - 2] != PASS:
        before -= 2
        times += position.hashes[before] == position.hashes[n]
    return times >= 3

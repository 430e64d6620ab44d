"""Games to SGF (Smart Game Format FF[4], www.red-bean.com/sgf), by sgfmill."""

from typing import Any

from sgfmill import sgf

from engine import __version__
from engine.go.game import Game, Stage
from engine.go.geometry import BLACK, EMPTY, WHITE, to_sgf
from engine.go.notation import color_letter
from engine.go.rules import CUSTOM, short_form

RU_NAMES = {"aga": "AGA", "goe": "GOE", "new-zealand": "NZ"}
"""Names of rules that the standard fixes; of the others it fixes ``Japanese``, and people write the rest alike."""


def write_sgf(game: Game, black: str = "", white: str = "", result: str = "") -> str:
    """A game as FF[4] in UTF-8, on one line, as scripts expect of ``printsgf``.

    Args:
        black, white: names of the players.
        result: as in RE, ``B+3.5``.
    """
    record = sgf.Sgf_game(game.size, encoding="UTF-8")
    root = record.get_root()
    root.set("AP", ("Keima", __version__))
    # With its point a large one is no number of hundredths, as servers write them.
    root.set_raw("KM", f"{game.komi:g}".encode() if abs(game.komi) < 100 else f"{game.komi:.1f}".encode())
    name = game.rules.name
    root.set("RU", short_form(game.rules) if name == CUSTOM else RU_NAMES.get(name, name.title()))
    for name, text in (("PB", black), ("PW", white), ("RE", result)):
        if text:
            root.set(name, text)
    if game.handicap and not game.earlier:
        root.set("HA", game.handicap)
    before: Stage | None = None
    for stage in (*game.earlier, Stage(game.start_stones(), game.start_to_move, game.moves())):
        node = root if before is None else record.extend_main_sequence()
        _set_up(node, stage, {} if before is None else _reached(before, game.size), game.size)
        for color, point in stage.moves:
            record.extend_main_sequence().set_raw(color_letter(color), to_sgf(point, game.size).encode())
        before = stage
    return record.serialise(wrap=None).decode("utf-8")


def _reached(stage: Stage, size: int) -> dict[int, int]:
    """The stones on the board at the end of a stage, colour by point."""
    game = Game(size)
    black, white = ([point for point, of in stage.stones.items() if of == color] for color in (BLACK, WHITE))
    game.setup_stones(black, white, stage.to_move)
    for move in stage.moves:
        game.play(*move)
    return game.stones()


def _set_up(node: Any, stage: Stage, before: dict[int, int], size: int) -> None:
    """Write what makes a position of the one before."""
    changed = before.items() ^ stage.stones.items()
    colors = {point: stage.stones.get(point, EMPTY) for point, _ in sorted(changed)}
    for name, color in (("AB", BLACK), ("AW", WHITE), ("AE", EMPTY)):
        if places := [to_sgf(point, size).encode() for point, of in colors.items() if of == color]:
            node.set_raw_list(name, places)
    if stage.stones or stage.to_move == WHITE:
        # Without it stones of Black alone are a handicap, after which White is to move.
        node.set("PL", color_letter(stage.to_move).lower())

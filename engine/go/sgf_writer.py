"""Games to SGF (Smart Game Format FF[4], www.red-bean.com/sgf), by sgfmill."""

from sgfmill import sgf

from engine import __version__
from engine.go.game import Game
from engine.go.geometry import BLACK, WHITE, to_sgf
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
    if game.handicap:
        root.set("HA", game.handicap)
    start = game.start_stones()
    for name, color in (("AB", BLACK), ("AW", WHITE)):
        places = [to_sgf(point, game.size).encode() for point, of in start.items() if of == color]
        if places:
            root.set_raw_list(name, places)
    if start or game.start_to_move == WHITE:
        # Without it stones of Black alone are a handicap, after which White is to move.
        root.set("PL", color_letter(game.start_to_move).lower())
    for color, point in game.moves():
        record.extend_main_sequence().set_raw(color_letter(color), to_sgf(point, game.size).encode())
    return record.serialise(wrap=None).decode("utf-8")

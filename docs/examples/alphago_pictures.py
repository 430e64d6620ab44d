"""AlphaGo's Figure 5 and more: the pictures of docs/alphago.md, drawn by the shipped networks.

    python docs/examples/alphago_pictures.py [FOLDER]

Writes three SVG files to FOLDER (the present one if none is given): the six panels of Figure 5 for the position before
move 37 of the second game in Seoul; the policy network of 9x9 in opening, fight and endgame of a game; and three of its
hidden layers, low to high.
"""

import sys
from contextlib import closing
from pathlib import Path

from engine.config import PlayOptions, SearchOptions
from engine.insight.position_pictures import COLUMNS, picture
from engine.pictures.charts import side_by_side
from engine.pictures.drawing import stand_alone
from engine.play.player import Player
from weights import find_network

HERE = Path(__file__).parent
SEOUL, NINE = HERE / "seoul-2016-game-2.sgf", HERE / "nine-by-nine.sgf"
VISITS = 1600
PHASES = (6, 24, 44)
LAYERS = ("layers.0", "layers.5", "layers.11")


def main(arguments: list[str]) -> None:
    """Draw all pictures."""
    out = Path(arguments[0] if arguments else ".")
    options = SearchOptions(seed=1, threads=1, rollout_weight=0.5)
    with closing(Player(options, PlayOptions(), find_network("default"))) as player:
        player.load_sgf(SEOUL.read_bytes(), 36)
        write(out / "alphago-figure5.svg", picture(player, "figure5", VISITS))
    with closing(Player(SearchOptions(seed=1), PlayOptions(), find_network("alphago-9-sl"), size=9)) as player:
        phases = []
        for moves in PHASES:
            player.load_sgf(NINE.read_bytes(), moves)
            phases.append(picture(player, "policy", 1))
        write(out / "alphago-policies.svg", side_by_side(phases, COLUMNS))
        layers = [picture(player, "layers", 1, layer) for layer in LAYERS]
        write(out / "alphago-layers.svg", side_by_side(layers, COLUMNS))


def write(path: Path, drawing: str) -> None:
    """Write a drawing as a file."""
    path.write_text(stand_alone(drawing), encoding="utf-8")
    print(path)


if __name__ == "__main__":
    main(sys.argv[1:])

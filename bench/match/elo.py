"""Elo ratings of all players in the folders of several matches, as a table and a chart::

python -m bench.match.elo runs/a-gnugo runs/b-gnugo runs/a-b --reference "GNU Go 3.8" --picture ratings.svg
"""

import json
from collections.abc import Iterable
from pathlib import Path

import click

from bench.match.folder import GameRecord, different, read_records
from engine.evaluation.elo import rated, unconnected
from engine.pictures.charts import interval_chart
from engine.pictures.drawing import stand_alone
from engine.system.files import written_whole
from gtp.cli import one_line_errors


def results_in(folders: Iterable[Path]) -> dict[tuple[str, str], float]:
    """Wins between players in the ``games.jsonl`` files of match folders; a repeated game counts once.

    Returns:
        (winner, loser) -> number of wins; a draw is half a win for each of the two.
    Raises:
        ValueError: a folder has no such file, or a line of it is not a valid record; one line naming it.
    """
    wins: dict[tuple[str, str], float] = {}
    found: list[GameRecord] = []
    for folder in dict.fromkeys(folder.resolve() for folder in folders):
        path = folder / "games.jsonl"
        if not path.exists():
            raise ValueError(f"{path}: no such file, expected the folder of a match")
        try:
            found += read_records(path)
        except OSError as error:
            raise ValueError(f"{path}: cannot be read ({error.strerror})") from error
    for record in different(found):
        first, second = record.names["first"], record.names["second"]
        share = {"first": 1.0, "second": 0.0, "draw": 0.5}.get(record.winner or "")
        if share is not None and first != second:
            wins[first, second] = wins.get((first, second), 0.0) + share
            wins[second, first] = wins.get((second, first), 0.0) + 1.0 - share
    return wins


def check_boards(folders: Iterable[Path]) -> None:
    """Check that matches can be rated together.

    Raises:
        ValueError: boards of different sizes, handicap games, or a damaged ``match.json``; one line.
    """
    seen: dict[int, Path] = {}
    for folder in folders:
        path = folder / "match.json"
        try:
            settings = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
            size, handicap = settings.get("size"), settings.get("handicap")
        except (OSError, ValueError, AttributeError) as error:
            raise ValueError(f"{path}: not the settings of a match") from error
        if handicap:
            raise ValueError(f"{folder}: games with {handicap} handicap stones cannot be rated")
        if size:
            seen.setdefault(size, folder)
    if len(seen) > 1:
        said = ", ".join(f"{folder} on {size}x{size}" for size, folder in seen.items())
        raise ValueError(f"games of different boards: {said}; rate them apart")


@click.command(context_settings={"show_default": True})
@click.argument("folders", nargs=-1, required=True, type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option(
    "--reference", default="", metavar="NAME", help="player whose Elo is 0; default: the mean of all players is 0"
)
@click.option("--picture", type=click.Path(dir_okay=False, path_type=Path), help="SVG file for a chart of the ratings")
def command(folders: tuple[Path, ...], reference: str, picture: Path | None) -> None:
    """Print Elo ratings of all players in the FOLDERS of matches (keima match --sgf FOLDER), with 95% intervals."""
    with one_line_errors():
        check_boards(folders)
        wins = results_in(folders)
        players = {name for pair in wins for name in pair}
        if not players:
            raise ValueError("none of these games has a winner yet")
        if (apart := unconnected(wins)) is not None:
            raise ValueError(f"no chain of games connects '{apart[0]}' and '{apart[1]}': rate their folders apart")
        if reference and reference not in players:
            raise ValueError(f"no games of '{reference}', expected one of {', '.join(sorted(players))}")
        found = rated(wins, reference)
        if picture:
            rows = [(one.name, one.elo, one.low, one.high) for one in found]
            drawn = interval_chart("Elo and 95% interval", rows, f"Elo, {reference or 'the mean of all'} being 0")
            with written_whole(picture) as part:
                part.write_text(stand_alone(drawn), encoding="utf-8")
    for one in found:
        games = sum(count for pair, count in wins.items() if one.name in pair)
        won = sum(count for (winner, _), count in wins.items() if winner == one.name)
        interval = f"[{one.low:+.0f}, {one.high:+.0f}]"
        click.echo(f"{one.elo:+7.0f} {interval:<16} {won:6.1f} of {games:<5.0f} {one.name}")


if __name__ == "__main__":
    command()

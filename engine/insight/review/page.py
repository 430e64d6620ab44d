"""A review as one HTML page that needs nothing else: no server, no network, no other file.

Without scripts it is a report to read and to print; the script adds the board to step through. It may load nothing:
its content security policy says so.
"""

import json
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from engine import __version__
from engine.go.geometry import BLACK, WHITE
from engine.insight.review import graphs, svg
from engine.insight.review.data import page_data
from engine.insight.review.judgement import KINDS, POINTS, Move
from engine.insight.review.review import (
    NOTHING,
    Review,
    after_better,
    amount,
    color_name,
    lead_text,
    standing,
    with_error,
)
from engine.insight.review.summary import PHASES, Score

HERE = Path(__file__).parent
POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
)


def page_of(review: Review) -> str:
    """The page."""
    body = "\n".join([
        _header(review), _costly(review), _play(review), _graphs(review), _players(review), _moves(review),
        f'<footer class="soft"><p>Keima {escape(__version__)}, {escape(str(review.means))}.'
        " Losses are what a move cost against the first choice, the engine's own drift taken off; a loss within the"
        " noise of the search counts as none.</p></footer>",
        f'<script type="application/json" id="data">{_data(review)}</script>',
        f"<script>{(HERE / 'page.js').read_text(encoding='utf-8')}</script>",
    ])  # fmt: skip
    return document(f"{review.title}: review", body)


def document(title: str, body: str) -> str:
    """An HTML page with our style."""
    style = (HERE / "page.css").read_text(encoding="utf-8")
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>\n{style}</style>\n</head>\n<body>\n{body}\n</body>\n</html>\n"
    )


def _data(review: Review) -> str:
    """What the script reads, with nothing that could end its element."""
    return json.dumps(page_data(review), separators=(",", ":")).replace("<", "\\u003c")


def about(review: Review) -> list[str]:
    """What is known of a game, in short words."""
    game, record = review.game, review.game.record
    komi = f"komi {game.komi:g}" + (f" (the file says {record.komi:g})" if record.komi not in (None, game.komi) else "")
    said = [f"{review.size}x{review.size}", f"{game.rules.name} rules", komi]
    said += [f"{game.handicap} handicap stones"] if game.handicap else []
    said += [f"{len(review.moves)} moves"]
    said += [f"result {record.result}"] if record.result else []
    return said + ([record.details["DT"]] if "DT" in record.details else [])


def _header(review: Review) -> str:
    return (
        f"<header><div><h1>{escape(review.title)}</h1>"
        f'<p class="soft">{escape(", ".join(about(review)))}</p></div>'
        '<button type="button" id="theme" class="screen" data-script hidden>Light or dark</button></header>'
    )


def _costly(review: Review) -> str:
    """The most costly moves, with what was better."""
    if not review.summary.costly:
        return "<section><h2>Most costly moves</h2><p>No move lost more than the search can tell.</p></section>"
    cards = "".join(_card(review, move) for move in review.summary.costly)
    return f'<section><h2>Most costly moves</h2><div class="cards">{cards}</div></section>'


def _card(review: Review, move: Move) -> str:
    """One costly move."""
    after, lines = review.turns[move.number], review.better(move)
    better = f"<p>Better: <b>{escape(' '.join(review.vertex(point) for point in lines[0]))}</b></p>" if lines else ""
    kind = f'<span class="kind k{move.kind}">{KINDS[move.kind]}</span>' if move.kind is not None else ""
    return (
        f'<article class="card">{graphs.costly_diagram(review, move)}'
        f"<h3>Move {move.number}: {color_name(move.color)} {review.vertex(move.point)}, {kind}</h3>"
        f"<p>Lost <b>{amount(move.counted, review.unit)}</b>.</p>{better}"
        f'<p class="soft">After the better move {escape(after_better(review, move))}; after the move played'
        f" {escape(standing(after))}.</p>"
        f'<p class="screen" data-script hidden><a href="#b{move.number}">Show it on the board</a></p></article>'
    )


def _play(review: Review) -> str:
    """The board to step through; the script fills its layers."""
    width, height = svg.side(review.size)
    buttons = "".join(
        f'<button type="button" data-do="{name}" aria-label="{words}" title="{words}">{sign}</button>'
        for name, sign, words in (
            ("first", "|◀", "First position"), ("back", "◀", "Back"), ("next", "▶", "Forward"),
            ("last", "▶|", "Last position"), ("earlier", "◀ !", "Previous inaccuracy or worse"),
            ("worse", "! ▶", "Next inaccuracy or worse"),
        )
    )  # fmt: skip
    toggles = (
        '<button type="button" data-do="best" id="t-best" aria-pressed="true">Best moves</button>'
        '<button type="button" data-do="owners" id="t-owners" aria-pressed="false">Ownership</button>'
    )
    return (
        '<section id="play" class="play" data-script hidden aria-label="The game on the board"><div>'
        f'<svg id="board" viewBox="0 0 {width} {height}" role="img" tabindex="0">{svg.grid(review.size)}'
        '<g id="owners"></g><g id="stones"></g><g id="marks"></g></svg>'
        f'<div class="bar"><label class="unseen" for="slider">Move</label>'
        f'<input type="range" id="slider" min="0" max="{len(review.moves)}" value="0">{buttons}{toggles}</div></div>'
        '<div><p id="status" aria-live="polite"></p><h3>Best moves here</h3><ol id="lines"></ol>'
        '<p class="soft">Keys: ← → step, n and p go to blamed moves, 1 to 6 show a line, Esc hides it, b best moves,'
        " o ownership. Swipe to step; tap a letter for its line, a stone for its move.</p></div></section>"
        "<noscript><p>With scripts switched on there is a board here to step through the game.</p></noscript>"
    )


def _graphs(review: Review) -> str:
    """Win rate, lead and losses over the game."""
    lost = "Points lost a move" if review.unit == POINTS else "Win rate lost a move"
    drawn = [
        ("Win rate", graphs.winrate_graph(review)),
        ("Lead", graphs.lead_graph(review)),
        (lost, graphs.loss_graph(review)),
    ]
    figures = "".join(
        f'<figure class="graph"><figcaption>{name}</figcaption>{graph}</figure>' for name, graph in drawn if graph
    )
    return f"<section><h2>Course of the game</h2>{figures}</section>"


def _players(review: Review) -> str:
    """Accuracy by phase, kinds of moves, and where kinds begin."""
    head = "".join(f'<th scope="col">{phase}</th>' for phase in ("whole game", *PHASES))
    rows = "".join(_accuracy_row(review, color) for color in (BLACK, WHITE))
    kinds = "".join(f'<th scope="col" class="k{n}">{kind}</th>' for n, kind in enumerate(KINDS))
    counts = "".join(
        f'<tr><th scope="row">{escape(review.player(color))}</th>'
        + "".join(
            f'<td data-color="{color}" data-kind="{n}">{count}</td>'
            for n, count in enumerate(review.summary.whole[color].kinds)
        )
        + "</tr>"
        for color in (BLACK, WHITE)
    )
    inputs = "".join(
        f'<label>{kind} from <input type="number" min="0" step="any" value="{value:g}"></label>'
        for kind, value in zip(KINDS[1:], review.thresholds, strict=True)
    )
    unit = "points" if review.unit == POINTS else "percent of the win rate"
    return (
        '<section><h2>Players</h2><div class="scroll"><table><caption>Accuracy, 0 to 100</caption><thead><tr>'
        f'<th scope="col">player</th>{head}<th scope="col">mean loss</th><th scope="col">first choices</th>'
        f'<th scope="col">as good</th></tr></thead><tbody>{rows}</tbody></table></div>'
        '<div class="scroll"><table id="kinds"><caption>Moves by what they lost</caption>'
        f'<thead><tr><th scope="col">player</th>{kinds}</tr></thead><tbody>{counts}</tbody></table></div>'
        f'<details class="screen" data-script hidden><summary>Where the kinds begin, in {unit}</summary>'
        f'<p id="thresholds">{inputs}</p><p id="t-wrong" role="alert" hidden>Each must be above 0 and no less than the'
        " one before.</p></details></section>"
    )


def _accuracy_row(review: Review, color: int) -> str:
    whole, phases = review.summary.whole[color], review.summary.phases[color]
    cells = [_accuracy(score) for score in (whole, *phases)]
    cells += [
        with_error(whole.mean_loss, whole.mean_loss_error, 2),
        _share(whole.first_choices),
        _share(whole.near_best),
    ]
    return (
        f'<tr><th scope="row">{escape(review.player(color))}</th>{"".join(f"<td>{cell}</td>" for cell in cells)}</tr>'
    )


def _accuracy(score: Score) -> str:
    """An accuracy and its 95% interval."""
    if score.accuracy is None or score.accuracies is None:
        return NOTHING
    low, high = score.accuracies
    return f'{score.accuracy:.0f} <span class="soft">({low:.0f} to {high:.0f})</span>'


def _number(value: float | None, digits: int = 0) -> str:
    return NOTHING if value is None else f"{value:.{digits}f}"


def _lost(move: Move) -> str:
    """A move's loss; one within the noise is no blame, and printed softly with its noise."""
    if move.loss is None or move.counted or not move.loss:
        return _number(move.loss, 1)
    return f'<span class="soft">{move.loss:.1f} ± {move.noise:.1f}</span>'


def _share(value: float | None) -> str:
    return NOTHING if value is None else f"{100 * value:.0f}%"


def _moves(review: Review) -> str:
    """All moves in a table."""
    rows = []
    for move in review.moves:
        after, lines = review.turns[move.number], review.better(move)
        kind = NOTHING if move.kind is None else KINDS[move.kind]
        style = "left kind" if move.kind is None else f"left kind k{move.kind}"
        best = review.vertex(lines[0][0]) if lines and move.counted else ""
        lead = "" if after.lead_black is None else lead_text(after.lead_black)
        rows.append(
            f'<tr data-move="{move.number}"><td><a href="#m{move.number}">{move.number}</a></td>'
            f'<td class="left">{color_name(move.color)} {review.vertex(move.point)}</td>'
            f'<td class="{style}">{kind}</td>'
            f"<td>{_lost(move)}</td><td>{best}</td>"
            f"<td>{100 * after.winrate_black:.0f}%</td><td>{lead}</td></tr>"
        )
    head = "".join(
        f'<th scope="col"{place}>{name}</th>'
        for name, place in (
            ("move", ""), ("played", ' class="left"'), ("kind", ' class="left"'), ("lost", ""), ("better", ""),
            ("Black", ""), ("lead", ""),
        )
    )  # fmt: skip
    return (
        '<section><h2>All moves</h2><div class="scroll"><table id="moves">'
        f"<thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table></div></section>"
    )


class Entry(NamedTuple):
    """A game in the list of games."""

    page: str
    """file of its review"""
    name: str
    title: str
    size: int
    result: str
    accuracies: tuple[float | None, float | None]
    """Black's and White's"""
    worst: str
    """its most costly move, in words"""


def entry_of(review: Review) -> Entry:
    """A review as the list of games shows it."""
    costly = review.summary.costly[0] if review.summary.costly else None
    worst = f"move {costly.number}, {amount(costly.counted, review.unit)}" if costly else NOTHING
    whole = review.summary.whole
    accuracies = whole[BLACK].accuracy, whole[WHITE].accuracy
    result = review.game.record.result
    return Entry(f"{review.name}.html", review.name, review.title, review.size, result, accuracies, worst)


def index_of_games(entries: Sequence[Entry]) -> str:
    """A page that lists games."""
    rows = "".join(
        f'<tr><th scope="row"><a href="{escape(quote(one.page))}">{escape(one.title)}</a>'
        f'<div class="soft">{escape(one.name)}</div></th><td>{one.size}x{one.size}</td>'
        f"<td>{escape(one.result or NOTHING)}</td>{''.join(f'<td>{_number(found)}</td>' for found in one.accuracies)}"
        f"<td>{one.worst}</td></tr>"
        for one in entries
    )
    names = ("game", "board", "result", "Black's accuracy", "White's accuracy", "most costly")
    head = "".join(f'<th scope="col">{name}</th>' for name in names)
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
    return document(f"{len(entries)} games: reviews", f'<h1>{len(entries)} games</h1><div class="scroll">{table}</div>')

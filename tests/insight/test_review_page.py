"""The page: no external resources, escaped texts, and the review's numbers."""

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from xml.etree import ElementTree

import numpy as np
import pytest

from engine.go.geometry import BLACK, WHITE
from engine.insight.raw_outputs import OWNER_LETTERS, owner_letters
from engine.insight.review.index import INDEX, accuracy_chart, entry_of, main_player, write_index
from engine.insight.review.losses import UNBLAMED
from engine.insight.review.review import lead_text
from engine.insight.review.turns import Decision
from engine.insight.review.writing import (
    ReviewOutputs,
    drawings,
    page_data,
    page_of,
    report_of,
    served,
    write_review,
)
from engine.pictures.drawing import stand_alone
from tests.insight.reviews import PLAYED, reviewed

LEADS = (0, 0, 0, 0, 0, 0, 0, -3, 4, -16, 0)
VOID = {"meta", "input", "br", "hr", "img", "link"}


class Page(HTMLParser):
    """The elements of a page; those that are not closed properly are found."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open, self.ids, self.links, self.wrong = [], set(), [], []
        self.texts: dict[str, list[str]] = {}
        self.tags: list[tuple[str, dict]] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        self.tags.append((tag, values))
        if values.get("id") in self.ids:
            self.wrong.append(f"two of {values['id']}")
        self.ids |= {values["id"]} if "id" in values else set()
        self.links += [values[name] for name in ("href", "src") if name in values]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.wrong.append(f"</{tag}>")

    def handle_data(self, data):
        if self.open:
            self.texts.setdefault(self.open[-1], []).append(data)


@pytest.fixture(scope="module")
def review():
    return reviewed(leads=LEADS)[0]


@pytest.fixture(scope="module")
def page(review):
    return page_of(review)


def test_the_page_is_well_formed_and_asks_for_nothing(page):
    found = Page(page)
    assert not found.wrong and not found.open
    assert all(link.startswith("#") for link in found.links)
    assert "default-src 'none'" in page
    urls = set(re.findall(r"https?://[^\"'\s)]*", page))
    assert urls <= {"http://www.w3.org/2000/svg"}, "the name of SVG is no address"
    assert not re.search(r"@import|url\(|XMLHttpRequest|WebSocket", page)


def test_only_a_page_that_a_server_marks_may_ask_it(page):
    """The policy of the file forbids every request; that of the served page allows those to its own server."""
    policy, head = re.compile(r'Content-Security-Policy" content="([^"]+)"'), re.compile(r"<html[^>]*>")
    assert "connect-src" not in policy.findall(page)[0] and head.findall(page) == ['<html lang="en">']
    made = served(page, "/api/analyse")
    assert "default-src 'none'; connect-src 'self';" in policy.findall(made)[0]
    assert head.findall(made) == ['<html data-analyse="/api/analyse" lang="en">']
    assert page.count("fetch(") == 1 and "document.documentElement.dataset.analyse" in page


def index_of(folder, entries):
    write_index(folder / INDEX, entries)
    return (folder / INDEX).read_text(encoding="utf-8")


def test_names_are_text_and_no_html(page, tmp_path):
    assert "Ben &amp; Co &lt;b&gt;" in page and "<b>:" not in page
    hostile = reviewed(PLAYED.replace(b"Ann", b"</script><script>alert(1)</script>"), LEADS)[0]
    assert page_of(hostile).count("<script") == page.count("<script")
    entry = entry_of(hostile)._replace(page='a"b#c.html')
    index = index_of(tmp_path, [entry])
    assert index.count("<script") == 1 and 'href="a%22b%23c.html"' in index


def test_the_board_comes_first_then_both_graphs_then_the_costly_moves_of_each_player(page):
    places = [
        page.index(text) for text in ('id="board"', 'id="status"', 'id="g-winrate"', 'id="g-lead"', 'id="lessons"')
    ]
    assert places == sorted(places)
    found = Page(page)
    assert [text.split(":")[0] for text in found.texts["h4"]] == ["Move 9", "Move 7", "Move 10", "Move 8"]
    assert found.texts["h3"] == ["Ann 2k", "Ben & Co <b>"]
    assert "The board before move 9. Black played E6, which lost 20.0 points. Better: G7 F7." in found.texts["title"]
    rule = "weighted by how open the game was: 4 w (1 − w)"
    assert rule in page and page.index(rule) > page.index('id="lessons"')


def test_cards_show_what_was_compared(review):
    """The loss is the difference of the two leads that a card names."""
    move = review.summary.costly[0]
    best, after = review.turns[move.number - 1].moves[0], review.turns[move.number]
    assert move.loss == pytest.approx(abs(best.lead_black - after.lead_black), abs=0.01)
    values = f"after G7 {lead_text(best.lead_black)}, after E6 {lead_text(after.lead_black)}"
    assert review.compared(move) == values == "after G7 B+4.0, after E6 W+16.0" and f": {values}." in page_of(review)
    rates = [replace(turn, lead_black=None, moves=[one._replace(lead_black=None) for one in turn.moves])
             for turn in review.turns]  # fmt: skip
    assert replace(review, turns=rates).compared(move) == "after G7 Black 54.0%, after E6 Black 34.0%"


def test_a_line_sums_up_each_player(review, page):
    """Accuracy, counts of the kinds that are blamed, and where the game was decided."""
    players = page[page.index('<ul class="players">') : page.index("</ul>")]
    black, white = (re.sub(r"<[^>]+>|\s+", " ", part) for part in players.split("</li>")[:2])
    text = " ".join(black.split())
    assert text.startswith(f"Ann 2k accuracy {review.summary.whole[BLACK].accuracy:.0f} ")
    assert "inaccuracies 1 mistakes 0 blunders 1" in text
    assert "mistakes 1 blunders 1" in " ".join(white.split())


@pytest.mark.parametrize(
    ("decision", "black", "white"),
    [
        (None, ("even at the end", None), ("even at the end", None)),
        (Decision(WHITE, 3, 7), ("behind from move", 3), ("above 90% from move", 7)),
        (Decision(WHITE, 0, 0), ("behind from the start", None), ("above 90% from the start", None)),
        (Decision(BLACK, 2, None), ("ahead, open to the end", None),
         ("behind from move", 2)),
    ],
)  # fmt: skip
def test_where_the_game_was_decided_is_said_to_each_player(review, decision, black, white):
    made = replace(review, decision=decision)
    assert (made.decided(BLACK), made.decided(WHITE)) == (black, white)
    assert not Page(page_of(made)).wrong


def test_the_reason_of_a_move_stands_with_it(review):
    made = replace(review, reasons={9: "The 5 black stones at D4 die, captured by E3."})
    assert page_of(made).count("The 5 black stones at D4 die, captured by E3.") == 2, "in its card, and for the script"


def test_a_loss_within_the_noise_is_shown_with_it(review):
    moves = [replace(move, loss=0.9, noise=2.1, kind=UNBLAMED) for move in review.moves]
    page = page_of(replace(review, moves=moves))
    assert page.count('<span class="soft">0.9 ± 2.1</span>') == len(moves)


def test_what_only_a_script_can_do_is_hidden_without_one(page):
    scripted = [values for tag, values in Page(page).tags if "data-script" in values]
    assert scripted and all("hidden" in values for values in scripted)
    assert "<noscript>" in page


def test_pictures_and_controls_have_names_for_those_who_do_not_see_them(page):
    for tag, values in Page(page).tags:
        if tag == "svg" and values.get("id") != "board":
            assert values["role"] == "img"
        if tag == "button":
            assert values.get("aria-label") or values.get("id")
    assert page.count("<title>") == 1 + page.count("<svg") - 1, (
        "every drawing but the board, which the script describes"
    )
    assert 'aria-live="polite"' in page


def test_the_page_fits_a_phone_and_a_sheet_of_paper(page):
    assert "width=device-width" in page and "@media print" in page and "prefers-color-scheme:dark" in page


def test_the_script_can_replay_the_game():
    """Captures, a pass and a suicide, as the board itself has them after each move."""
    moves = "ba aa ab .. ee de ca ed .. bb .. ac .. da .. cb aa".replace(".", "").split(" ")
    played = "".join(f";{'BW'[n % 2]}[{move}]" for n, move in enumerate(moves))
    data = f"(;SZ[5]KM[0]RU[NZ]{played})".encode()
    review = reviewed(data)[0]
    found, colors = page_data(review), [0] * 25
    assert found["start"] == "0" * 25
    for turn, move in enumerate(found["moves"], 1):
        if move["i"] >= 0:
            colors[move["i"]] = move["c"]
        for gone in move["x"]:
            colors[gone] = 0
        assert colors == review.game.colors(turn)
    assert any(move["x"] for move in found["moves"])


def test_ownership_is_a_character_a_point():
    assert owner_letters(np.array([-1.0, 0.0, 1.0, -2.0])) == "Af+A" and len(OWNER_LETTERS) == 63


def test_the_report_for_programs_has_every_move_and_position(review):
    report = json.loads(json.dumps(report_of(review)))
    assert [move["kind"] for move in report["moves"]][6:] == ["inaccuracy", "mistake", "blunder", "blunder"]
    assert report["mostCostly"] == [9, 10, 8] and report["players"]["W"]["mostCostly"] == [10, 8]
    assert report["moves"][8]["better"][0] == ["G7", "F7"]
    assert len(report["positions"]) == 11 and len(report["positions"][0]["ownership"]) == 81
    assert report["game"]["black"] == "Ann 2k" and report["game"]["komi"] == 7.0


def test_pictures_are_files_of_their_own(review):
    for name, drawn in drawings(review).items():
        root = ElementTree.fromstring(stand_alone(drawn).encode())
        assert root.tag == "{http://www.w3.org/2000/svg}svg", name
    assert set(drawings(review)) == {"winrate", "lead", "loss", "move-9", "move-7", "move-10", "move-8", "end"}


def test_a_losing_line_of_the_graph_goes_the_losers_way(review):
    bars = re.findall(r'<rect data-move="(\d+)"[^>]* y="([\d.]+)"', drawings(review)["loss"])
    assert [number for number, _ in bars] == ["7", "8", "9", "10"]
    white = {y for number, y in bars if number in ("8", "10")}
    assert len(white) == 1, "White's begin at 0 and go down"
    assert all(float(y) < float(min(white)) - 1 for number, y in bars if number in ("7", "9"))


def test_files_are_written_whole_and_only_those_that_are_wanted(review, tmp_path):
    tree = reviewed(leads=LEADS)[1]
    assert write_review(tmp_path, review, tree, ReviewOutputs()) == entry_of(review)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["game.html", "game.sgf"]
    write_review(tmp_path, review, tree, ReviewOutputs(json=True, svg=True))
    assert json.loads((tmp_path / "game.json").read_text(encoding="utf-8"))["unit"] == "points"
    index = Page(index_of(tmp_path, [entry_of(review)]))
    assert set(index.links) == {"game.html"} and not index.wrong


def entry(name, date, players, accuracies, review):
    return entry_of(review)._replace(name=name, date=date, names=players, accuracies=accuracies)


def test_the_index_begins_with_the_newest_game_and_shows_final_positions(review, tmp_path):
    dated = replace(review.game.record, details=review.game.record.details | {"DT": "2026-05-03,04"})
    made = entry_of(replace(review, game=replace(review.game, record=dated)))
    assert (made.date, made.players, made.moves) == ("2026-05-03", ("Ann 2k", "Ben & Co <b>"), 10)
    assert made.worst == "move 9, Black E6: 20.0 points"
    text = index_of(tmp_path, [made._replace(name="old", date="2025"), made, made._replace(name="none", date="")])
    assert re.findall(r'<th scope="row"[^>]*><a [^>]*>(\w+)</a>', text) == ["game", "old", "none"]
    assert text.count("<title>The board after move 10</title>") == 3 and not Page(text).wrong


def test_both_accuracies_over_time_are_those_of_the_player_of_most_games(review):
    """Whatever colour the player had; without such a player those of Black and of White."""
    games = [
        entry("b", "2026-02-01", ("Ben", "Ann"), (60.0, 80.0), review),
        entry("a", "2026-01-01", ("Ann", "Cleo"), (70.0, 50.0), review),
        entry("c", "2026-03-01", ("Dora", "Eve"), (10.0, 20.0), review),
        entry("d", "2026-04-01", ("", ""), (None, 20.0), review),
    ]
    assert main_player(games) == "Ann"
    chart = accuracy_chart(games)
    assert ">Ann</text>" in chart and ">opponents</text>" in chart and chart.count("<circle") == 4
    heights = [float(y) for y in re.findall(r'cy="([\d.]+)"', chart)]
    assert heights[0] > heights[1] and heights[2] > heights[3], "70 and 80 rise, and so do 50 and 60"
    assert re.findall(r">(2026-\d\d)<", chart) == ["2026-01", "2026-02"]
    strangers = [games[0], games[2], entry("e", "", ("Fay", "Gus"), (30.0, 40.0), review)]
    assert main_player(strangers) == "" and ">Black</text>" in accuracy_chart(strangers)
    assert accuracy_chart(games[2:]) == "", "one game is no course"


def test_png_needs_matplotlib(review, tmp_path):
    pytest.importorskip("matplotlib")
    write_review(tmp_path, review, reviewed(leads=LEADS)[1], ReviewOutputs(png=True))
    pictures = sorted(path.name for path in tmp_path.glob("*.png"))
    assert "game-move-9.png" in pictures and len(pictures) == 8
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in tmp_path.glob("*.png"))


def test_a_game_without_losses_says_so():
    review = reviewed()[0]
    assert review.summary.costly == []
    page = page_of(review)
    assert "No move lost more than the search can tell." in page and not Page(page).wrong
    assert np.isclose(review.summary.whole[BLACK].accuracy, 100) and review.summary.whole[WHITE].moves == 5

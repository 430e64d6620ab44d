"""Dead stones and results of finished games, as GNU Go sees them."""

import pytest

from bench.match.gtp_client import GtpClient
from engine.config import PlayOptions, SearchOptions
from engine.go.geometry import BLACK, PASS, from_vertex, other, to_vertex
from engine.play.player import Player

GAMES = 12
ANSWER_S = 60.0


@pytest.mark.slow
@pytest.mark.clients("gnugo")
def test_results_and_dead_stones_agree_with_gnugo(gnugo):
    """GNU Go plays itself at its lowest level, which leaves a game now and then unfinished: those may be disputed."""
    player = Player(SearchOptions(), PlayOptions(), size=9)
    winners = scores = stones = wrong = 0
    for seed in range(100, 100 + GAMES):
        with GtpClient(
            [gnugo, *f"--mode gtp --level 1 --chinese-rules --never-resign --seed {seed}".split()]
        ) as client:
            client.ask("boardsize 9", ANSWER_S)
            client.ask("komi 7.5", ANSWER_S)
            player.new_game(9)
            color = BLACK
            while not player.game.is_over:
                point = from_vertex(client.ask(f"genmove {'-bw'[color]}", ANSWER_S), 9)
                player.play(color, point)
                color = other(color)
            theirs = client.ask("final_score", ANSWER_S)
            dead = set(client.ask("final_status_list dead", ANSWER_S).split())
        mine = {to_vertex(point, 9) for chain in player.final_status("dead") for point in chain}
        ours = player.final_score()
        winners += ours[0] == theirs[0]
        scores += ours == theirs
        wrong += len(mine ^ dead)
        stones += sum(point != PASS for _, point in player.game.moves())
    player.close()
    assert winners >= GAMES - 1
    assert scores >= GAMES - 2
    assert wrong < 0.03 * stones

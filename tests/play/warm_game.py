"""Games that call every kernel that play needs: ``python -m tests.play.warm_game`` writes ``engine/play/kernels.txt``.

It needs an empty cache folder: verdicts kept there spare checks of networks that call kernels.
``python -m tests.play.warm_game NETWORK ENCODER`` compiles what that file names, plays, and prints the kernels that
were compiled besides.
"""

import re
import subprocess
import sys
from dataclasses import replace

import numpy as np
from numba import typeof

from engine.config import FULL, PlayOptions, SearchOptions, SetupOptions
from engine.features.encoder import ENCODERS, kernel_of
from engine.go.geometry import BLACK, PASS, WHITE
from engine.go.rules import rules_named
from engine.insight.layers import layers
from engine.insight.thinking import Thinking, rollout
from engine.nets.compute.program import LINE
from engine.play import ahead
from engine.play.game_session import Purpose
from engine.search.report import Watcher
from engine.search.stoppers import SearchLimits
from engine.system.arrays import numba_type
from engine.system.jit import _Kernel
from gtp.cli.options import options_from
from gtp.cli.settings import read_settings
from gtp.startup import PlayerSettings, load_player
from tests.playing import DEAD_STONES, position
from weights import DEFAULT, find_network, players

GAMES = (("default", "keima-1"), ("alphago-9", "alphago-49"))


def compiled(scratch):
    """Kernels that Python has called, in the order of a dict; with their types as the record writes them."""
    modules = [module for name, module in list(sys.modules.items()) if name.startswith("engine.")]
    kernels = {id(item): item for module in modules for item in vars(module).values() if isinstance(item, _Kernel)}
    found = {}
    for kernel in kernels.values():
        name = (
            "ENCODE" if kernel is kernel_of(scratch) else f"{kernel.py_func.__module__}.{kernel.py_func.__qualname__}"
        )
        for number, signature in enumerate(kernel.overloads):
            found[f"{name}#{number}" if number else name] = (
                f"({', '.join(written(one, scratch) for one in signature)},)"
            )
    return found


def written(one, scratch):
    """A type as the record has it."""
    if one == typeof(np.zeros(0, LINE)):
        return ahead.LINES
    struct = getattr(one, "instance_class", None)
    if struct is type(scratch):
        return ahead.SCRATCH
    if struct is not None:
        try:
            if numba_type(struct) == one:
                return struct.__name__
        except (AttributeError, TypeError):
            pass  # A struct whose fields do not say their types.
        return f"struct({struct.__name__}, {', '.join(written(part, scratch) for part in one.types)})"
    if hasattr(one, "types"):
        return f"Tuple(({', '.join(written(part, scratch) for part in one.types)},))"
    return re.sub(r"\b(\d)d\b", r"\1", str(one).replace("readonly array", "readonly"))


def at_a_level(player):
    """A move at a level."""
    player.configure(replace(player.options, level="10k"), player.search_options)
    player.genmove(BLACK)
    player.configure(replace(player.options, level=FULL), player.search_options)
    player.genmove(WHITE)


def help_of_page(player, network, search):
    """What the page of ``keima play`` asks for in the middle of a game."""
    thinking = []

    def on_report(report):
        thinking[:] = thinking or [Thinking(player.search)]
        found = thinking[0].now()
        if found is not None and len(found.get("values", {}).get("points", [])) > 1:
            player.interrupt()

    player.analyze(BLACK, Watcher(on_report, 0.05, ownership=True))
    thinking[0].close()
    player.resume()
    player.look(BLACK, 8)
    rollout(player.game.position, search, 1)
    layers(network, player.game.position)


def play(name, encoder):
    """Play, and give the kernels compiled by the first move, by levels and help on the page, and by the end."""
    scratch = ENCODERS[encoder].new_scratch(2)
    play = PlayOptions(visits=20, seconds=0.0, resign_below=-1.0)
    own = (read_settings(players()[name]) if name in players() else {}) | {"size": 9, "seed": 1}
    setup, search = options_from(SetupOptions, own), options_from(SearchOptions, own)
    player = load_player(PlayerSettings(setup, play, search, find_network(name)))
    player.genmove(BLACK)
    first = compiled(scratch)
    player.genmove(WHITE)
    if name == DEFAULT:
        at_a_level(player)
    help_of_page(player, find_network(name), search)
    page = compiled(scratch)
    for _ in range(29):
        player.genmove(BLACK)
        player.genmove(WHITE)
    for rules in ("chinese", "japanese", "tromp-taylor"):
        position(player, DEAD_STONES, BLACK)
        player.set_rules(rules_named(rules))
        player.final_score()
        player.final_status("seki")
        player.genmove(BLACK)
        player.play(WHITE, PASS)
        player.genmove(BLACK)
        player.genmove(WHITE)
        player.genmove(BLACK, Purpose.CLEAN_UP)
        player.undo()
    # Deep enough that leaves after two passes, which no network sees, are among those whose ownership is wanted.
    player.play(BLACK, PASS)
    player.analyze(WHITE, Watcher(lambda report: report.visits < 500 or player.interrupt(), 0.05, ownership=True))
    player.resume()
    fallback = player._backend.fallback()
    fallback.set_position(player.game.position)
    fallback.run(SearchLimits(visits=20))
    player.close()
    return first, page, compiled(scratch)


def record():
    """Play all games, each in a process of its own, and write the record.

    The first game says what the first move waits for: rollouts, which AlphaGo's needs too, take as long as all of that.
    """
    lines = {}
    for name, encoder in GAMES:
        command = [sys.executable, "-m", "tests.play.warm_game", "record", name, encoder]
        for line in subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines():
            when, kernel, arguments = line.split(" ", 2)
            lines.setdefault(kernel, f"{when if name == GAMES[0][0] else 'later'} {kernel} {arguments}")
    # Helpers compile in this order.
    ordered = sorted(lines.values(), key=lambda line: ahead.STAGES.index(line.split()[0]))
    ahead.RECORD.write_text("\n".join(ordered) + "\n", encoding="utf-8")


if __name__ == "__main__":
    if not sys.argv[1:]:
        record()
    elif sys.argv[1] == "record":
        # Only what play itself calls counts, not what the record of before has loaded.
        ahead.FIRST = ahead.PAGE = ahead.LATER = ()
        first, page, found = play(*sys.argv[2:])
        for kernel, arguments in found.items():
            print("first" if kernel in first else "page" if kernel in page else "later", kernel, arguments)
    else:
        for kernel in ahead.KERNELS:
            ahead.load(kernel, sys.argv[2])
        before = compiled(ENCODERS[sys.argv[2]].new_scratch(2))
        print(sorted(set(play(*sys.argv[1:])[2].items()) - set(before.items())))

"""The commands in README, CONTRIBUTING and docs/: their options exist, and each is run with small limits.

A page's commands run one after the other in a folder of the page, beside files that stand for a user's own.
"""

import gzip
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest

from engine.nets.architectures.registry import new_spec
from engine.nets.files.checkpoint import save_network
from engine.nets.files.leela_zero import save_leela
from gtp.cli import main
from tests.conftest import ROOT, find_program
from tests.nets.katago_files import random_network, written
from tests.nets.models import toy
from tests.train.pattern_games import SIZE, random_game

PROGRAMS = ("keima", "python", "make", "torchrun", "ray", "export", "uv", "pipx", "gogui-twogtp", "leelaz")
"""First words of a command; other lines in fenced blocks are settings, transcripts, files and Windows' commands."""
LEFT_OUT = {
    r"make (gtp|play|test|lint|test-slow|docs)\b": "installs packages from the internet",
    r"uv |pipx |python -m venv": "installs packages from the internet",
    r"keima weights get \w": "downloads from the internet",
    r"export RAY|ray ": "needs a cluster of two machines; the commands that use it run with --ray local",
    r"keima play": "serves until it is stopped; tests/gtp/web starts it",
    r"gogui-twogtp ": "another program, without a package for Python; bench/match plays the same games",
}
"""Beginnings of the commands that are not run, and why"""
EXCHANGED = {
    r"\S*/keima/\.venv/bin/keima": "keima",
    r"--seconds \d+": "--seconds 0.2",
    r"--level 10": "--level 1",
    r"--ray (?!local)\S+": "--ray local --actors 1",
    r"--nproc-per-node 4": "--nproc-per-node 2",
    r"--rollouts 500": "--rollouts 2",
    r"--time 10\+": "--time 1+",
    r"--network NAME": "--network keima-resnet",
    r"leelaz --gtp": "leelaz --cpu-only --noponder --playouts 2 --gtp",
    r"katago gtp -config 400-visits.cfg": "keima gtp --visits 4",
    r"katago (gtp|analysis) -config \S+ -model NETWORK[^\"]*": r"keima \1 --config none --weights none",
    r"runs/a-gnugo runs/b-gnugo runs/a-b": "runs/gnugo-9x9",
}
"""What a command has here instead"""
SMALL = {
    "keima alphago": "--dry-run",
    "keima data label": "--positions 40 --threads 1",
    "keima data play": "--games 60 --threads 1",
    "keima data reached": "--positions 40 --visits 4 --threads 1",
    "keima data values": "--positions 150 --threads 1",
    "keima evaluate alphago-9-value": "--positions 40 --rollouts 2",
    "keima evaluate default": "--positions 40",
    "keima evaluate runs/mine": "--positions 40",
    "keima evaluate value-9": "--positions 40",
    "keima match": "--games 2",
    "keima picture": "--visits 4",
    "keima review": "--visits 4",
    "keima train dual": "--steps 4 --batch 4 --blocks 1 --channels 8 --threads 1",
    "keima train reinforce": "--updates 2 --games 2 --check-every 2 --check-games 2 --threads 1",
    "keima train value": "--steps 4 --batch 4 --threads 1",
    "keima zero --size 19": "--dry-run",
    "keima zero": "--minutes 0.1 --threads 1",
    "python -m bench.reliability --quick": "counts --jobs 1",
    "python -m bench.reliability": "--quick --jobs 1 -k 'count or rollouts-1-'",
    "python -m bench.speed.inference": "--seconds 0.1 --repeats 1",
    "python -m bench.speed.rollouts": "--seconds 0.1 --repeats 1",
    "python -m bench.speed.peers": "--size 9 --seconds 0.1 --repeats 1 --visits 2 --json-visits 2",
    "python -m bench.strength.arena": "--visits 2 --games 2 --processes 1",
    "python -m bench.strength.regret": "--visits 4 --deep 10 --positions 2",
}
"""Options that are added to commands with these words, the first that fits: they override those on the page."""
GTP_INPUT = "genmove b\nquit\n"
JSON_INPUT = '{"id":"a","moves":[["b","E5"]],"rules":"chinese","boardXSize":9,"boardYSize":9,"maxVisits":2}\n'
ON_9X9 = "(;SZ[9]KM[7];B[ee];W[cc];B[gg];W[gc];B[cg];W[ce];B[eg];W[ec];B[ge];W[gd];B[fd];W[fc])"
SUITE = "boardsize 9\n10 reg_genmove black\n#? [E5]*\n"


def blocks_of(page: Path) -> list[list[str]]:
    """Commands of a page's fenced blocks, each in one line and without its comment; blocks without any are left out."""
    found = []
    for block in re.findall(r"^```\w*\n(.*?)^```", page.read_text(encoding="utf-8"), re.S | re.M):
        lines = re.sub(r" *\\\n *", " ", block).splitlines()
        bare = [re.sub(r" {2,}(#.*|\(.*\))$", "", line).removeprefix("exec ").strip() for line in lines]
        found.append([line for line in bare if re.match(rf"(/path\S*/)?({'|'.join(PROGRAMS)})( |$)", line)])
    return [block for block in found if block]


def commands_of(page: Path) -> list[str]:
    """All commands of a page."""
    return [command for block in blocks_of(page) for command in block]


def shown(page: Path) -> str:
    """A page's path, as test id."""
    return page.relative_to(ROOT).as_posix()


ALL_PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
ALL_PAGES += sorted((ROOT / "docs" / "clients").glob("*.md"))
PAGES = [page for page in ALL_PAGES if commands_of(page)]


def reason_not_to_run(command: str) -> str:
    """Why a command cannot be run here; empty where it can."""
    for start, reason in LEFT_OUT.items():
        if re.match(start, command):
            return reason
    lacking = [
        name for name in ("gnugo", "leelaz", "pachi") if re.search(rf"\b{name} ", command) and not find_program(name)
    ]
    return f"needs the program {lacking[0]}" if lacking else ""


def made_small(command: str) -> str:
    """A command with what is exchanged and added here."""
    for old, new in EXCHANGED.items():
        command = re.sub(old, new, command)
    added = next((options for start, options in SMALL.items() if start in command), "")
    command, arrow, file = command.partition(" >")
    return f"{command} {added}{arrow}{file}"


@pytest.fixture(scope="session")
def environment(tmp_path_factory) -> dict[str, str]:
    """Variables under which ``keima``, ``python`` and ``torchrun`` are those of this checkout."""
    folder, python = tmp_path_factory.mktemp("bin"), shlex.quote(sys.executable)
    for name, module in {"keima": "-m gtp.cli", "python": "", "torchrun": "-m torch.distributed.run"}.items():
        (folder / name).write_text(f'#!/bin/sh\nexec {python} -P {module} "$@"\n')
        (folder / name).chmod(0o755)
    path = os.pathsep.join((str(folder), os.environ.get("PATH", os.defpath), "/usr/games"))
    networks = tmp_path_factory.mktemp("networks")
    (networks / "katago-human.bin.gz").write_bytes(gzip.compress(written(random_network(15, human=True), True)))
    return {
        **os.environ,
        "PATH": path,
        "KEIMA_NETWORKS": str(networks),
        "PYTHONPATH": str(ROOT),
        "OMP_NUM_THREADS": "1",
    }


@pytest.fixture(scope="session")
def given(tmp_path_factory, environment) -> Path:
    """A folder with a file or folder of each name that stands for a user's own."""
    folder = tmp_path_factory.mktemp("given")
    games = [as_sgf(random_game(seed, SIZE, 30)) for seed in range(150)]
    for name in ("my-games", "kgs-2015", "more", "kgs", "KGS", "more-games", "games-review", "archive", "runs/katago"):
        (folder / name).mkdir(parents=True)
        for number, text in enumerate(games[:2] if name in ("games-review", "runs/katago") else games):
            (folder / name / f"{number}.sgf").write_text(text if name != "runs/katago" else ON_9X9)
    (folder / "my-game.sgf").write_text(games[0])
    (folder / "wide.toml").write_text("window-slope = 0.8\nwindow-power = 0.9\n")
    (folder / "large.toml").write_text("window = 100000\n")
    for name, packed in (("my-games", "my-games"), ("archive", "archive"), ("more", "games-review")):
        shutil.make_archive(str(folder / name), "zip", folder / packed)
    build = "keima data build my-games --out built && keima data play default --size 9 --games 20 --out held-9"
    subprocess.run(build, shell=True, check=True, cwd=folder, env=environment)
    shard = next((folder / "built" / "train").glob("*.npz.xz"))
    for name in ("GAMES", "HELD_OUT.npz.xz", "held-out.npz.xz"):
        shutil.copy(shard, folder / name)
    shutil.copy(next((folder / "held-9").glob("*.npz.xz")), folder / "held-out-9.npz.xz")
    weights, zero = ROOT / "weights", toy("alphago-zero", size=19)
    networks = {
        "value-9/network": "alphago-9-value", "rl-9/network": "alphago-9-rl", "runs/policy/network": "alphago-9-sl",
        "runs/value/network": "alphago-9-value", "NETWORK": "small", "NETWORK2": "small", "teacher.bin.gz": "small",
        "g170-b6c96-s175395328-d26788732.bin.gz": "small",
    }  # fmt: skip
    for name, network in networks.items():
        path = folder / (f"{name}.safetensors" if name.endswith("/network") else name)
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(weights / f"{network}.safetensors", path)
    save_network(folder / "FILE", zero, new_spec(zero, "made", "zero-17"), {})
    save_leela(folder / "LEELA", zero, new_spec(zero, "made", "zero-17"))
    (folder / "runs" / "alphago-9").mkdir()
    shutil.copy(weights / "alphago-9.toml", folder / "runs" / "alphago-9" / "player.toml")
    (folder / "gnugo-3.8" / "regression").mkdir(parents=True)
    (folder / "gnugo-3.8" / "regression" / "tiny.tst").write_text(SUITE)
    return folder


def as_sgf(moves: list[int]) -> str:
    """A game of policy indices between two players of 7 dan."""
    places = "".join(f";{'BW'[n % 2]}[{chr(97 + move % SIZE)}{chr(97 + move // SIZE)}]" for n, move in enumerate(moves))
    return f"(;SZ[{SIZE}]KM[6.5]BR[7d]WR[7d]RE[B+R]{places})"


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.skipif(os.name == "nt", reason="the pages' commands are for a shell of Unix")
@pytest.mark.parametrize("page", PAGES, ids=shown)
def test_the_commands_of_a_page_run(page, given, environment, tmp_path):
    """In the page's order, in one folder: later ones find what earlier ones have made, on docs/zero.md in a block."""
    text = " ".join(commands_of(page))
    for path in given.iterdir():
        is_made = f"--out {path.name} " in f"{text} "
        if not is_made and re.search(rf"(?<![\w-]){re.escape(path.name)}\b", text):
            copy = shutil.copytree if path.is_dir() else shutil.copy
            copy(path, tmp_path / path.name)
    if page.name == "alphago.md":
        shutil.copytree(ROOT / "docs" / "examples", tmp_path / "docs" / "examples")
    if page.name == "review.md":
        shutil.copytree(given / "games-review", tmp_path / "games")
    if page.name == "networks.md":
        (tmp_path / "runs" / "mine").mkdir(parents=True, exist_ok=True)
        shutil.copy(given / "FILE", tmp_path / "runs" / "mine" / "network.safetensors")
    for block in blocks_of(page):
        if page.name == "zero.md":
            shutil.rmtree(tmp_path / "runs", ignore_errors=True)
        for command in block:
            run(command, environment, tmp_path)


def run(command: str, environment: dict[str, str], folder: Path) -> None:
    """Run a command of a page; what it prints is shown where it fails."""
    if reason := reason_not_to_run(command):
        print(f"not run ({reason}): {command}")
        return
    small = made_small(command)
    print(f"$ {small}", flush=True)
    keys = JSON_INPUT if " analysis" in small else GTP_INPUT
    where = ROOT if command.startswith("make") else folder
    words = {"cwd": where, "env": environment, "input": keys, "capture_output": True, "text": True, "timeout": 1200}
    done = subprocess.run(["bash", "-c", small], **words)
    assert done.returncode == 0, f"{small}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    if re.match(r"keima gtp(?!.*--print-config)", small):
        assert re.match(r"= \w+", done.stdout), small


def test_every_entry_of_the_tables_is_for_a_command():
    commands = [command for page in PAGES for command in commands_of(page)]
    assert len(commands) > 70
    for start in LEFT_OUT:
        assert any(re.match(start, command) for command in commands), start
    for pattern in EXCHANGED:
        assert any(re.search(pattern, command) for command in commands), pattern
    for start in SMALL:
        assert any(start in command for command in commands), start


def spans_of(page: Path) -> list[str]:
    """Commands of a page's sentences and tables: what stands between backticks and begins with ``keima``."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.S | re.M)
    return [" ".join(span.split()) for span in re.findall(r"`(keima [^`]+)`", text)]


def unknown_options(words: list[str]) -> list[str]:
    """Options of a ``keima`` command that it does not have, and of the commands that are its arguments."""
    command: click.Command = main
    for word in words[1:]:
        if isinstance(command, click.Group):
            # A network's name stands for the subcommand that evaluates networks.
            context = click.Context(command)
            found = command.get_command(context, word) or command.get_command(context, "network")
            if found is None:
                return [word] if re.fullmatch(r"[a-z-]+", word) else []
            command = found
    known = {name for option in command.params for name in (*option.opts, *option.secondary_opts)} | {"--help"}
    inner = [shlex.split(word) for word in words[1:] if word.startswith("keima ")]
    unknown = [word for word in words if word.startswith("--") and word != "--" and word.partition("=")[0] not in known]
    return unknown + [option for command_line in inner for option in unknown_options(command_line)]


@pytest.mark.parametrize("page", ALL_PAGES, ids=shown)
def test_every_option_on_a_page_exists(page):
    lines = [re.sub(r"\S*/keima/\.venv/bin/keima", "keima", command) for command in commands_of(page)]
    lines = [line.partition(" -- ")[2] if line.startswith("torchrun") else line for line in lines] + spans_of(page)
    for line in lines:
        if line.startswith("keima "):
            assert not unknown_options(shlex.split(line.partition(" >")[0])), line

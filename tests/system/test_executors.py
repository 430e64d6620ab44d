"""Executors: every item is done once, exceptions are raised, executors stop, killed Ray actors are replaced."""

import itertools
import os
import signal
import threading
from collections import Counter

import pytest

from engine.config.declaration import core_count
from engine.system.executor import LocalExecutor
from tests.system.jobs import Pids, Squares, kill

ray = pytest.importorskip("ray")
from engine.system import on_ray  # noqa: E402
from engine.system.on_ray import LOCAL, OnRay, Place, places  # noqa: E402


@pytest.fixture(scope="module")
def actors():
    # More than the machine has processors, so that several share one.
    made = OnRay(LOCAL, actors=core_count() + 1, chunk=5)
    yield made
    made.close()


@pytest.fixture(params=["here", "ray"])
def executor(request):
    return LocalExecutor() if request.param == "here" else request.getfixturevalue("actors")


@pytest.fixture
def files(tmp_path):
    (tmp_path / "text").write_text("square")
    return {"text": tmp_path / "text"}


def test_every_piece_of_work_is_done_once(executor, files):
    found, reports = [], []
    executor.work(Squares(), files, iter(range(41)), found.append, threading.Event(), lambda: reports.append(1), 0.01)
    numbers = [number for done, _ in found for number in done]
    assert sorted(numbers) == list(range(41)) and reports
    for done, content in found:
        assert content.decode() == f"square {' '.join(str(one * one) for one in done)}"


def test_another_job_has_its_own_files(executor, files):
    found = []
    executor.work(Squares(), files, iter([2]), found.append, threading.Event(), lambda: None, 0.01)
    files["text"].write_text("other")
    executor.work(Squares(), files, iter([3]), found.append, threading.Event(), lambda: None, 0.01)
    assert found == [((2,), b"square 4"), ((3,), b"other 9")]


def test_two_jobs_at_once_are_not_taken_for_one(actors, files, tmp_path, monkeypatch):
    """As where the games of self-play end while the ladder is played."""
    (tmp_path / "other").write_text("other")
    both, put, found = threading.Barrier(2), ray.put, {"square": [], "other": []}

    def put_together(content):
        both.wait(60)
        return put(content)

    def work(text, path):
        actors.work(Squares(), {"text": path}, iter([4]), found[text].append, threading.Event(), lambda: None, 0.01)

    monkeypatch.setattr(on_ray.ray, "put", put_together)
    paths = {"square": files["text"], "other": tmp_path / "other"}
    threads = [threading.Thread(target=work, args=one) for one in paths.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {"square": [((4,), b"square 16")], "other": [((4,), b"other 16")]}


def test_what_a_job_fails_with_arrives(executor, files):
    with pytest.raises(ValueError, match="seven is refused"):
        executor.work(
            Squares(fails_at=7), files, iter(range(20)), lambda done: None, threading.Event(), lambda: None, 0.01
        )


def test_an_executor_stops_though_there_is_more_to_do(executor, files):
    stopped, found = threading.Event(), []

    def take(done):
        found.append(done)
        stopped.set()

    executor.work(Squares(), files, itertools.count(), take, stopped, lambda: None, 0.01)
    assert found


def test_actors_that_are_killed_are_replaced_and_nothing_is_lost(actors, files):
    """Killed in the midst of their chunks; a chunk whose result was not there yet is done anew."""
    found: list[tuple] = []
    kills = 3

    def take(done):
        nonlocal kills
        found.append(done)
        if len(found) % 20 == 10 and kills:
            kills -= 1
            kill(int(done[1]))

    actors.work(Pids(seconds=0.002), files, iter(range(200)), take, threading.Event(), lambda: None, 0.01)
    counts = Counter(number for numbers, _ in found for number in numbers)
    assert sorted(counts) == list(range(200)) and kills == 0
    assert len({content for _, content in found}) > 2


def test_what_an_actor_without_room_was_to_do_the_others_do(actors, files, monkeypatch):
    """An actor that is stopped stands for one that Ray cannot start anew: it does not answer, and is not dead."""
    monkeypatch.setattr(on_ray, "SILENT_S", 0.5)
    found, stopped = [], []

    def take(done):
        found.append(done)
        if not stopped:
            stopped.append(int(done[1]))
            os.kill(stopped[0], signal.SIGSTOP)

    try:
        actors.work(Pids(seconds=0.002), files, iter(range(100)), take, threading.Event(), lambda: None, 0.01)
    finally:
        os.kill(stopped[0], signal.SIGCONT)
    assert sorted(number for numbers, _ in found for number in numbers) == list(range(100))


@pytest.mark.parametrize(
    ("machines", "actors", "expected"),
    [
        ([{"CPU": 2.0}, {"CPU": 4.0}, {}], 0, (6, Place(1, 0, 1))),
        ([{"CPU": 2.0}, {"CPU": 4.0}], 5, (5, Place(1, 0, 1))),
        ([{"CPU": 2.0}, {"CPU": 1.0}], 8, (8, Place(0.3333, 0, 1))),
        ([{"CPU": 64.0}, {"CPU": 8.0, "GPU": 2.0}], 0, (2, Place(4, 1, 4))),
        ([{"CPU": 64.0}, {"CPU": 8.0, "GPU": 2.0}], 5, (5, Place(1, 0.3333, 1))),
        ([{"CPU": 1.0, "GPU": 2.0}], 0, (2, Place(0, 1, 1))),
    ],
)
def test_every_actor_has_a_place_on_some_machine(machines, actors, expected):
    assert places(machines, actors) == expected


def test_no_cluster_is_one_line():
    with pytest.raises(ValueError, match=r"no Ray at 127.0.0.1:1 \(.*refused\)"):
        OnRay("127.0.0.1:1")

"""``keima play`` as a process, and its page in Chromium, by mouse, keyboard and touch as a person has them.

Input goes through Chromium's own protocol, so the page cannot tell it from a person's.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service

from tests.conftest import ROOT

WAIT_S = 240.0
"""Longest wait for anything; kernels may be compiled meanwhile"""
KEYS = {"Enter": 13, "Escape": 27, "Backspace": 8, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40,
        "Home": 36, "End": 35, "PageUp": 33, "PageDown": 34, "Tab": 9, " ": 32}  # fmt: skip
COLUMNS = "ABCDEFGHJKLMNOPQRSTUVWXYZ"
MIDDLE = """const one = document.getElementById(arguments[0]);
one.scrollIntoView({block: 'nearest', behavior: 'instant'});
const box = one.getBoundingClientRect();
return [box.left + box.width / 2, box.top + box.height / 2];"""
ASK = "const done = arguments[0]; fetch('/api/state').then((answer) => answer.json()).then(done);"
PLACE = """const board = document.getElementById('board');
board.scrollIntoView({block: 'nearest', behavior: 'instant'});
const box = board.getBoundingClientRect();
const view = board.viewBox.baseVal;
const scale = box.width / view.width, [column, row] = arguments;
return [box.left + scale * (24 * (column + 1.5) - view.x), box.top + scale * (24 * (row + 1) - view.y)];"""


class Server:
    """A process of ``keima play`` with a folder of games of its own."""

    def __init__(self, folder: Path, *options: str) -> None:
        self._environment = os.environ | {"XDG_DATA_HOME": str(folder), "PYTHONPATH": str(ROOT)}
        self._options = options
        self.port = 0
        self.start()

    def start(self) -> None:
        """Start, on the same port as before."""
        words = [sys.executable, "-P", "-m", "gtp.cli", "play", "--no-browser", "--port", str(self.port)]
        words += self._options
        self.process = subprocess.Popen(words, env=self._environment, stdout=subprocess.PIPE, text=True)
        self.address = self.process.stdout.readline().strip()
        assert "?token=" in self.address
        self.port = int(self.address.partition("?")[0].rstrip("/").rpartition(":")[2])

    def kill(self) -> None:
        """End the process without warning."""
        self.process.send_signal(signal.SIGKILL)
        self.close()

    def close(self) -> None:
        """End the process."""
        self.process.terminate()
        self.process.wait(WAIT_S)
        self.process.stdout.close()


class Browser:
    """A page of ``keima play`` in a headless Chromium."""

    def __init__(self, folder: Path, width: int = 1280, height: int = 860, is_phone: bool = False) -> None:
        options = Options()
        options.binary_location = str(shutil.which("chromium"))
        for word in (
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
            f"--user-data-dir={folder}",
        ):
            options.add_argument(word)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self.driver = webdriver.Chrome(options=options, service=Service(str(shutil.which("chromedriver"))))
        self.driver.set_script_timeout(WAIT_S)
        self._is_phone = is_phone
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": is_phone}
        self.send("Emulation.setDeviceMetricsOverride", **size)
        if is_phone:
            self.send("Emulation.setTouchEmulationEnabled", enabled=True)
            self.send("Emulation.setEmitTouchEventsForMouse", enabled=False)

    def send(self, command: str, **values):
        """Send a command of Chromium's protocol."""
        return self.driver.execute_cdp_cmd(command, values)

    def open(self, address: str) -> None:
        """Open the page, and wait until the game's kernels are there."""
        self.driver.get(address)
        self.wait(lambda: self.state()["id"])

    def run(self, script: str, *values):
        """The value of a script."""
        return self.driver.execute_script(script, *values)

    def state(self) -> dict:
        """The server's state, asked by the page."""
        return self.driver.execute_async_script(ASK)

    def wait(self, condition, what: str = "") -> None:
        """Wait until a condition holds."""
        end = time.monotonic() + WAIT_S
        while not condition():
            assert time.monotonic() < end, f"{what or 'this took too long'}: {self.state()}, {self.text('wrong')}"
            time.sleep(0.02)

    def text(self, name: str) -> str:
        """The text of an element that is seen; empty where it is hidden or missing."""
        return self.run(
            "const one = document.getElementById(arguments[0]); return one?.offsetParent ? one.innerText : '';", name
        )

    def clock(self, color: str) -> str:
        """The text of a player's clock."""
        return self.run("return document.querySelector(`#player-${arguments[0]} .clock`).innerText;", color)

    def stones(self) -> int:
        """Number of stones on the board."""
        return self.run("return document.querySelectorAll('#board .stones circle:not(.last)').length;")

    def shows(self, name: str) -> bool:
        """Whether an element is seen."""
        return self.run("return document.getElementById(arguments[0]).offsetParent !== null;", name)

    def set(self, name: str, value: str) -> None:
        """Set a field of the panel of a new game."""
        self.run(
            "const one = document.forms.start.elements[arguments[0]]; one.value = arguments[1];"
            "document.forms.start.dispatchEvent(new Event('input', {bubbles: true}));", name, value,
        )  # fmt: skip

    def click(self, name: str) -> None:
        """Click on an element, or tap it."""
        self._press(*self.run(MIDDLE, name))

    def place(self, index: int, size: int) -> tuple[float, float]:
        """Coordinates of a point on the screen."""
        row, column = divmod(index, size)
        x, y = self.run(PLACE, column, row)
        return x, y

    def point(self, index: int, size: int) -> None:
        """Click on a point of the board, or tap it."""
        self._press(*self.place(index, size))

    def _press(self, x: float, y: float) -> None:
        """Click or tap on a place of the screen."""
        if self._is_phone:
            self.send("Input.dispatchTouchEvent", type="touchStart", touchPoints=[{"x": x, "y": y}])
            self.send("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])
            return
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def key(self, name: str, shift: bool = False) -> None:
        """Press a key."""
        name = name.upper() if shift and len(name) == 1 else name
        code = KEYS.get(name, ord(name.upper()[0]))
        text = "\r" if name == "Enter" else name if len(name) == 1 else ""
        values = {"key": name, "windowsVirtualKeyCode": code, "modifiers": 8 * shift}
        self.send("Input.dispatchKeyEvent", type="keyDown" if text else "rawKeyDown", text=text, **values)
        self.send("Input.dispatchKeyEvent", type="keyUp", **values)

    def type(self, index: int, size: int) -> None:
        """Type a vertex and Enter."""
        for letter in vertex(index, size):
            self.key(letter, shift=letter.isalpha())
        self.key("Enter")

    def errors(self) -> list[str]:
        """Messages of errors in the console since the last call."""
        return [one["message"] for one in self.driver.get_log("browser") if one["level"] == "SEVERE"]

    def requests(self) -> list[str]:
        """Addresses that the page has asked for since the last call."""
        messages = [json.loads(one["message"])["message"] for one in self.driver.get_log("performance")]
        return [one["params"]["request"]["url"] for one in messages if one["method"] == "Network.requestWillBeSent"]

    def close(self) -> None:
        """Close the browser."""
        self.driver.quit()


def vertex(index: int, size: int) -> str:
    """The text of a point."""
    row, column = divmod(index, size)
    return f"{COLUMNS[column]}{size - row}"


def index_of(text: str, size: int) -> int:
    """The index of a vertex."""
    return (size - int(text[1:])) * size + COLUMNS.index(text[0])


def new_game(browser, stones=0, **settings):
    """Begin a game by the panel; ``stones``: those of a handicap."""
    if not browser.shows("start"):
        browser.click("new")
    for name, value in settings.items():
        browser.set(name, value)
    browser.click("start-play")
    browser.wait(lambda: not browser.shows("start") and browser.stones() == stones, "a new game")


def answered(browser, number):
    """Wait until the engine has answered a move, or the game has left the play."""

    def is_there():
        state = browser.state()
        return state["phase"] != "play" or (
            state["number"] >= number and state["players"][state["toMove"]]["engine"] is False
        )

    browser.wait(is_there, f"no answer to move {number - 1}")


def hinted(browser, asks, size):
    """The move of the hint, which ends with the position."""
    browser.wait(
        lambda: browser.run("return document.getElementById('hint').ariaPressed;") == "false", "the hint's end"
    )
    asks()
    browser.wait(lambda: browser.text("search").startswith("Hint: "), "a hint")
    word = browser.text("search").removeprefix("Hint: ").split()[0]
    return -1 if word == "pass" else index_of(word, size)

"""The pictures of docs/play.md: ``python -m tests.gtp.web.pictures`` plays a game and writes them anew.

They show the real page and the shipped network, so each run shows another game.
"""

import base64
import io
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from PIL import Image

from tests.conftest import ROOT
from tests.gtp.web.browsers import Browser, Server, answered, hinted, index_of, new_game

DOCS = ROOT / "docs"
SIZE = 9
MOVES = 7
"""Moves of Black in the shown game"""
OPENING = ("E5", "C7", "G3", "G7", "C3", "E3", "C5")
THINK_S = 12.0
DESKTOP, TALL, PHONE = (
    {"width": 1180, "height": 760},
    {"width": 1400, "height": 1010},
    {"width": 390, "height": 800, "is_phone": True},
)
LAYER = 8
COLORS = 256
"""Colours of a picture: a smaller file"""


def main() -> None:
    """Play, and write the pictures."""
    with tempfile.TemporaryDirectory() as folder:
        games = Path(folder)
        with serving(games / "default", "--visits", "200") as server:
            shoot(server, games / "desktop", DESKTOP, "light", begun_game)
            shoot(server, games / "layers", TALL, "light", layers)
            shoot(server, games / "phone", PHONE, "dark", on_a_phone)
        with serving(games / "alphago", "--weights", "alphago-9") as server:
            shoot(server, games / "tall", TALL, "light", six_panels)


@contextmanager
def serving(folder: Path, *options: str) -> Iterator[Server]:
    """A server for the time of a ``with``."""
    server = Server(folder, "--size", str(SIZE), *options)
    try:
        yield server
    finally:
        server.close()


def shoot(server: Server, folder: Path, size: dict, theme: str, act: Callable[[Browser], None]) -> None:
    """Let ``act`` take pictures in a new browser."""
    browser = Browser(folder, **size)
    try:
        browser.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": theme}])
        browser.open(server.address)
        act(browser)
        for name in ("candidates", "ownership", "thinks"):
            if browser.run("return document.getElementById(arguments[0]).ariaPressed;", name) == "true":
                browser.click(name)
        browser.wait(lambda: not any(browser.state()["help"].values()))
    finally:
        browser.close()


def take(browser: Browser, name: str, element: str = "") -> None:
    """Write a picture of the page, or of one of its elements."""
    clip = {}
    if element:
        box = browser.run(
            "const box = document.querySelector(arguments[0]).getBoundingClientRect();"
            "return {x: box.x + scrollX, y: box.y + scrollY, width: box.width, height: box.height, scale: 1};", element,
        )  # fmt: skip
        clip = {"clip": box, "captureBeyondViewport": True}
    picture = browser.send("Page.captureScreenshot", format="png", optimizeForSpeed=False, **clip)
    image = Image.open(io.BytesIO(base64.b64decode(picture["data"]))).convert("RGB")
    image.quantize(COLORS, dither=Image.Dither.FLOYDSTEINBERG).save(DOCS / name, optimize=True)


def begun_game(browser: Browser) -> None:
    """A game, with its candidates."""
    new_game(browser, size=str(SIZE), color="black")
    for _ in range(MOVES):
        number = browser.state()["number"]
        browser.point(hinted(browser, lambda: browser.click("hint"), SIZE), SIZE)
        answered(browser, number + 2)
    browser.click("candidates")
    browser.click("graph")
    time.sleep(THINK_S / 3)
    browser.send("Input.dispatchMouseEvent", type="mouseMoved", x=2, y=2)
    browser.run("scrollTo(0, 0);")
    take(browser, "play.png")


def six_panels(browser: Browser) -> None:
    """How AlphaGo's networks for 9x9 think, which have all six parts."""
    new_game(browser, size=str(SIZE), color="both")
    for move in OPENING:
        browser.point(index_of(move, SIZE), SIZE)
    browser.click("thinks")
    browser.run("scrollTo(0, 0);")
    time.sleep(THINK_S)
    take(browser, "play-thinking.png")


def layers(browser: Browser) -> None:
    """A hidden layer."""
    browser.click("thinks")
    browser.wait(lambda: browser.run("return document.getElementById('layer').max > 1;"))
    time.sleep(THINK_S / 3)
    for _ in range(LAYER):
        before = browser.run("return document.getElementById('layer').getAttribute('aria-valuetext');")
        browser.click("layer-forward")
        browser.wait(
            lambda: browser.run("return document.getElementById('layer').getAttribute('aria-valuetext');") != before  # noqa: B023
        )
    time.sleep(1)
    take(browser, "play-layers.png", "#layer-figure")


def on_a_phone(browser: Browser) -> None:
    """The same game on a phone, with ownership."""
    browser.click("ownership")
    time.sleep(THINK_S / 3)
    browser.run("scrollTo(0, 0);")
    take(browser, "play-phone.png")


if __name__ == "__main__":
    main()

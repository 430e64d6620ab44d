"""The review of a finished game, as ``keima play`` serves it, in a real browser: a move tried, and the quiz."""

import re

import pytest

from tests.gtp.web.browsers import Server, new_game, vertex

BAD = (40, 0, 1, 20, 8, 80, 7, 72)
"""Moves of both colours: first-line moves are mistakes"""

pytestmark = pytest.mark.clients("chromium", "chromedriver")


def status(browser):
    """The verdict of the page."""
    return " ".join(browser.run("return document.getElementById('status').textContent;").split())


def test_a_finished_game_is_reviewed_and_its_page_answers(tmp_path, browse):
    server = Server(tmp_path / "games", "--visits", "1", "--size", "9")
    try:
        browser = browse(server.address)
        open_review(browser)
        try_moves(browser)
        take_quiz(browser)
        browser.driver.close()
        browser.driver.switch_to.window(browser.driver.window_handles[0])
        assert browser.state()["result"] == "W+R" and browser.errors() == []
    finally:
        server.close()


def open_review(browser):
    """Play a game, resign it, have it reviewed, and open the review in another tab."""
    new_game(browser, size="9", color="both")
    for number, index in enumerate(BAD, 1):
        browser.point(index, 9)
        browser.wait(lambda number=number: browser.state()["number"] == number)
    browser.click("resign")
    browser.driver.find_element("css selector", "#resigning button.main").click()
    browser.wait(lambda: browser.shows("ended"), "the end")
    assert browser.text("count") == "White wins by resignation."
    browser.click("ended-review")
    browser.wait(lambda: browser.text("review").startswith("Review: "), "the progress")
    browser.wait(lambda: "Open the review" in browser.text("review"), "the review")
    browser.driver.find_element("css selector", "#review a").click()
    browser.wait(lambda: len(browser.driver.window_handles) == 2)
    browser.driver.switch_to.window(browser.driver.window_handles[1])
    browser.wait(lambda: browser.run("return document.readyState;") == "complete" and status(browser))
    assert "/review/" in browser.driver.current_url


def try_moves(browser):
    """Try moves of one's own, which the server analyses beside the game."""
    browser.point(36, 9)
    browser.wait(lambda: "Your line after move 0: Black A5." in status(browser), "a move that is tried")
    browser.wait(lambda: "Analysed with" in status(browser), "the server's analysis")
    assert re.search(r"Analysed with \d+ visits\. Black \d+\.\d%.* White to move\.", status(browser))
    best = browser.run("return document.querySelector('#lines b').textContent;")
    browser.key("1")
    browser.wait(lambda: f"Line: {best}" in status(browser), "the line of the analysis")
    browser.run("document.querySelector('#point').focus();")
    for letter in "C3":
        browser.key(letter)
    browser.key("Enter")
    browser.wait(lambda: "Black A5 C3" in status(browser) and "Analysed with" in status(browser))
    browser.click("t-leave")
    browser.wait(lambda: status(browser).startswith("The start of the game."))


def take_quiz(browser):
    """Answer the first question, and have the others answered, to the end."""
    quiz = browser.driver.find_element("css selector", "[data-quiz='2']")
    browser.run("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'});", quiz)
    quiz.click()
    asked = int(re.match(r"Question 1 of (\d+), move (\d+): White to move\.", status(browser))[1])
    for number in range(1, asked + 1):
        assert status(browser).startswith(f"Question {number} of {asked}")
        if number == 1:
            browser.point(60, 9)
            browser.wait(lambda: f"{vertex(60, 9)}:" in status(browser), "an answer")
        else:
            browser.click("t-answer")
            browser.wait(lambda: "White played" in status(browser), "the answer shown")
        browser.click("t-following")
    assert re.match(rf"[01] of {asked} moves found\.", status(browser))
    browser.click("t-leave")
    assert browser.errors() == []

"""Parsers of SGF properties as people and servers write them: results, ranks, dates, times.

The functions ending in ``_of`` take the text of a property, empty if it is missing, and never fail: text that they do
not understand counts as unknown. Forms are those of the standard (www.red-bean.com/sgf), of KGS, OGS, IGS, Tygem and
Fox, and of Chinese, Japanese and Korean archives.
"""

import re
from datetime import date
from typing import NamedTuple

from engine.records.games import COUNTED, FORFEIT, RESIGNED, TIME, UNKNOWN, VOID

PROFESSIONAL = 20
"""Added to the dan of professionals, so that their rank number is above that of all amateurs"""
MAX_MARGIN = 625
_NUMERALS = {sign: n for n, sign in enumerate("一二三四五六七八九十", 1)}
_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]


class Result(NamedTuple):
    """How a game ended."""

    winner: int
    """1 Black, -1 White, 0 neither or unknown"""
    ending: int
    """index into :data:`engine.records.games.ENDINGS`: UNKNOWN, COUNTED, RESIGNED, TIME, FORFEIT or VOID"""
    margin: float
    """winning margin in points; NaN = not counted or unknown; 0 = drawn"""


NOTHING = float("nan")
_VOID = re.compile(r"void|no.?result|both|annul|無勝負|无胜负|無効")
_DRAW = re.compile(r"0(?:\.0+)?$|d$|d\+|draw|jigo|tie$|和棋?$|[持芇]碁|持棋|무승부|빅")
_WINNER = re.compile(r"(?:(b(?:lack)?(?![a-z])|黑|黒|흑)|(w(?:hite)?(?![a-z])|白|백))")
_LOST = re.compile(
    r"(?:resigns|resigned|loses|lost|forfeits|forfeited)\b|(?:中盘|中盤|超时|超時|时间|時間|時間切れ)?(?:负|負|败|敗|认输|認輸|投了)"
)
"""Matches words after the name of a colour that mean that this colour lost"""
_ENDINGS = (
    (re.compile(r"r(?:es)?(?![a-z])|.*(?:resign|中盘|中盤|中押|投了|认输|불계)"), RESIGNED),
    (re.compile(r"t(?![a-z])|.*(?:time|超时|超時|時間|时间|시간)"), TIME),
    (re.compile(r"f(?![a-z])|.*(?:forf|offline|disconn|弃权|棄権|不戦|反则|反則|掉线|기권|반칙)"), FORFEIT),
)
_POINTS = re.compile(r"(?:((?<!\d)\d++(?:[.,]\d++(?!/))?)(?!/))?(?: ?(?:又|と)? ?(\d)/(\d))?")
"""Matches a margin in text with single blanks: a number, a fraction such as 1/4, or both"""
_HALF = re.compile(r"[半½반]")
_ZI = "子"


def result_of(text: str) -> Result:
    """Parse the result in RE: ``B+R``, ``W+12.5``, ``B+Time``, ``Draw``, ``白胜1又1/4子``, ...

    ``Black resigns`` and ``黑超时负`` name the loser. Margins in "zi" or in quarters count stones of one colour and are
    doubled to points. A margin that is then no multiple of half a point, or zero with a winner, counts as unknown, and
    the winner is kept.
    """
    words = " ".join(text.casefold().split())
    if _VOID.match(words):
        return Result(0, VOID, NOTHING)
    winner = _WINNER.match(words)
    if winner is None:
        return Result(0, COUNTED, 0.0) if _DRAW.match(words) else Result(0, UNKNOWN, NOTHING)
    sign, rest = (1 if winner[1] else -1), words[winner.end() :].lstrip()
    if _LOST.match(rest):
        sign = -sign
    rest = rest.lstrip("+ ")
    for pattern, ending in _ENDINGS:
        if pattern.match(rest):
            return Result(sign, ending, NOTHING)
    margin = _margin(rest)
    return Result(sign, UNKNOWN if margin is None else COUNTED, NOTHING if margin is None else margin)


def _margin(words: str) -> float | None:
    """Margin in points, from the words after the winner; None = no number or zero; NaN = an impossible margin."""
    found = next((match for match in _POINTS.finditer(words) if match[0]), None)
    whole, upper, lower = found.groups(default="") if found else ("", "", "")
    margin = float(whole.replace(",", ".")) if whole else 0.0
    if upper and int(lower):
        margin += int(upper) / int(lower)
    if _HALF.search(words):
        margin += 0.5
    if margin == 0:
        return None
    if _ZI in words or (4 * margin) % 2 == 1:
        margin *= 2
    return margin if (2 * margin).is_integer() and margin <= MAX_MARGIN else NOTHING


_RANK = re.compile(
    r"(?P<before>p(?:ro(?:fessional)?)?|职业|職業|프로)? ?(?P<number>\d{1,2})"
    r" ?(?P<unit>dan|d|段|단|kyu|gup|k|級|级|급|pro|p)? ?(?P<after>\(?pro?\)?|p)?"
)
"""Matches a rank in text with single blanks and Arabic digits"""


_NUMBER = re.compile(r"初|([一二三四五六七八九])?(十)?([一二三四五六七八九])?")


def _arabic(found: re.Match[str]) -> str:
    """Write a Chinese number below a hundred (a match of ``_NUMBER``) in Arabic digits; 初 is 1."""
    if found[0] in ("", "初"):
        return "1" if found[0] else ""
    tens, ten, ones = (_NUMERALS.get(sign or "", 0) for sign in found.groups())
    return str(10 * (tens or 1) + ones if ten else tens or ones)


def rank_of(text: str) -> int:
    """Parse the rank in BR or WR: ``9d``, ``5k?``, ``P9dan``, ``9p``, ``九段``, ...

    Returns:
        int: -30 to -1 for 30 to 1 kyu, 1 to 10 for dan, 21 to 29 for professional dan; 0 = unknown.
    """
    words = _NUMBER.sub(_arabic, " ".join(text.casefold().split()))
    found = _RANK.search(words)
    if found is None:
        return 0
    number, unit = int(found["number"]), found["unit"] or ""
    is_professional = bool(found["before"] or found["after"] or unit.startswith("p"))
    if unit.startswith(("k", "g", "級", "级", "급")):
        return -number if 1 <= number <= 30 else 0
    if is_professional:
        return PROFESSIONAL + number if 1 <= number <= 9 else 0
    return number if unit and 1 <= number <= 10 else 0


def rank_text(rank: int) -> str:
    """Write a rank number of :func:`rank_of` as ``5k``, ``9d`` or ``9p``; ``?`` if unknown."""
    if rank == 0:
        return "?"
    return f"{-rank}k" if rank < 0 else f"{rank}d" if rank <= PROFESSIONAL else f"{rank - PROFESSIONAL}p"


def read_rank(text: str) -> int:
    """Parse the rank in a command's option, as :func:`rank_of`.

    Raises:
        ValueError: the text is not a rank.
    """
    rank = rank_of(text)
    if rank == 0:
        raise ValueError(f"{text!r} is not a rank, expected one like 3k, 6d or 1p")
    return rank


_YEAR_FIRST = re.compile(
    r"(?<!\d)(1[5-9]\d\d|20\d\d)(?:\s*[-./年]\s*(\d{1,2})(?!\d)(?:\s*[-./月]\s*(\d{1,2})(?!\d))?)?"
)
_COMPACT = re.compile(r"(?<!\d)(1[5-9]\d\d|20\d\d)(\d\d)(\d\d)(?!\d)")
_DAY_FIRST = re.compile(r"(?<!\d)(\d{1,2})\.\s*(\d{1,2})\.\s*(1[5-9]\d\d|20\d\d)(?!\d)")
_WORD_MONTH = re.compile(
    r"(?:(\d{1,2})(?:st|nd|rd|th)?[\s-]+)?\b(" + "|".join(_MONTHS) + r")[a-z]*\b(?:[\s.]+(\d{1,2})(?:st|nd|rd|th)?\b)?"
)


def date_of(text: str) -> int:
    """Parse the first date in DT: ``2016-12-29 23:30``, ``2017.8.27``, ``20170827``, ``1996-05,06``, ``Dec 12, 2003``,
    ``2001``, ``29.12.2016``.

    Returns:
        int: yyyymmdd, with 00 for a month or day that is missing or not in the calendar; 0 = no date found.
    """
    words = text.casefold()
    found = _COMPACT.search(words)
    if found and (number := _date(*map(int, found.groups()))) % 100:
        return number
    if (found := _DAY_FIRST.search(words)) and (number := _date(*map(int, found.groups()[::-1]))) % 100:
        return number
    found = _YEAR_FIRST.search(words)
    if found is None:
        return 0
    year, month, day = (int(part or 0) for part in found.groups())
    named = _WORD_MONTH.search(words)
    if not month and named:
        month, day = 1 + _MONTHS.index(named[2]), int(named[1] or named[3] or 0)
    return _date(year, month, day)


def read_day(text: str) -> int:
    """Parse the date in a command's option, ``2016``, ``2016-12`` or ``2016-12-29``: yyyymmdd, 00 for omitted parts.

    Raises:
        ValueError: the text is none of these.
    """
    day = date_of(text)
    if day == 0 or text.count("-") != (day % 10000 > 0) + (day % 100 > 0):
        raise ValueError(f"{text!r} is not a date, expected 2016, 2016-12 or 2016-12-29")
    return day


def _date(year: int, month: int, day: int) -> int:
    """The number yyyymmdd, with 00 for a month or day that is not in the calendar."""
    if not 1 <= month <= 12:
        return 10000 * year
    try:
        date(year, month, day)
    except ValueError:
        day = 0
    return 10000 * year + 100 * month + day


_SECONDS = {"h": 3600, "m": 60, "s": 1, "小": 3600, "時": 3600, "时": 3600, "分": 60, "秒": 1}


def seconds_of(text: str) -> int:
    """Parse the main time in TM (``1800``, ``1h``, ``30 minutes``, ``25:00``): seconds; -1 = unknown."""
    if shown := re.fullmatch(r"\s*(?:(\d{1,3}):)?(\d{1,3}):(\d\d)\s*", text):
        hours, minutes, seconds = (int(part or 0) for part in shown.groups())
        return 3600 * hours + 60 * minutes + seconds
    found = re.match(r"\s*(\d{1,6}(?:\.\d*)?)\s*(\S?)", text.casefold())
    return int(float(found[1]) * _SECONDS.get(found[2], 1)) if found else -1

"""Errors as people read them."""

MOST_CHARACTERS = 200


def one_line(error: BaseException) -> str:
    """The first line of what an error says, of bounded length; its kind where it says nothing."""
    first, *_ = str(error).strip().splitlines() or [""]
    return " ".join(first.split())[:MOST_CHARACTERS] or type(error).__name__

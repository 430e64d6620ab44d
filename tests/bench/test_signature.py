"""The signature of the search: a change of what it does is never an accident."""

from bench.strength.signature import SIGNATURE, signature


def test_the_search_does_what_this_version_is_said_to_do():
    """Where the change was meant, put the new signature into bench/strength/signature.py and say so in the commit."""
    assert signature() == SIGNATURE

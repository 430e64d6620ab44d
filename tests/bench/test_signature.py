"""The signature of the search: changes of the search are never accidental."""

from bench.strength.signature import SIGNATURE, signature


def test_the_search_does_what_this_version_is_said_to_do():
    """After an intended change put the new signature into bench/strength/signature.py and into the commit message."""
    assert signature() == SIGNATURE

"""Whether another installed package stands before one of ours: their names are common words. Standard library alone."""

import importlib.metadata
import importlib.util
from collections.abc import Iterator
from pathlib import Path

PACKAGES = ("engine", "gtp", "bench", "weights")
PROJECT = "keima"
HOME = Path(__file__).resolve().parents[2]
"""The folder that ours lie in"""
FIX = "install Keima into a virtual environment of its own, or uninstall the other package"


def shadows() -> Iterator[str]:
    """A line for each package that is imported from elsewhere, or that another project has installed too."""
    owners = importlib.metadata.packages_distributions()
    for name in PACKAGES:
        spec = importlib.util.find_spec(name)
        places = list(spec.submodule_search_locations or ()) if spec else []
        folder = Path(places[0]).resolve().parent if places else None
        if folder != HOME:
            yield f"{name} is imported from {folder}, expected {HOME}"
        if others := sorted(set(owners.get(name, [])) - {PROJECT}):
            yield f"{name} is also installed by {', '.join(others)}"

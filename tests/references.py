"""What other programs said of positions: files of the reference material beside the checkout."""

import gzip
import json
from pathlib import Path


def rows(path: Path) -> list[dict]:
    """Objects of a compressed file, one a line."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]

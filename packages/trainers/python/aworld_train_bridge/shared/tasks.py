"""The tasks of a partition as a run directory has them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Mapping


Tasks = Mapping[str, Mapping[str, Any]]
"""Rows by the id of their task, as docs/4.reference/channel.md has them."""


def read_tasks(path: Path) -> Tasks:
    """Reads a JSON Lines file of {id, row}."""
    entries = [json.loads(line) for line in path.read_text(encoding="utf8").splitlines() if line]
    return {str(entry["id"]): entry["row"] for entry in entries}

"""The tasks of a partition as a run directory has them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Mapping


def read_tasks(path: Path) -> dict[str, Mapping[str, Any]]:
    """Rows by the id of their task: a JSON Lines file of {id, row}, the row as docs/4.reference/channel.md has it."""
    entries = [json.loads(line) for line in path.read_text(encoding="utf8").splitlines() if line]
    return {str(entry["id"]): entry["row"] for entry in entries}

"""Checkpoints of transformers' Trainer."""

from __future__ import annotations

import json
from pathlib import Path


def last_checkpoint(folder: Path) -> str | None:
    """The latest checkpoint that was written to its end: its trainer_state.json is written last, and a kill may leave it torn."""
    found = [path.parent for path in folder.glob("checkpoint-*/trainer_state.json") if path.parent.name.removeprefix("checkpoint-").isdigit() and _is_whole(path)]
    return str(max(found, key=lambda path: int(path.name.removeprefix("checkpoint-")))) if found else None


def _is_whole(path: Path) -> bool:
    try:
        json.loads(path.read_text(encoding="utf8"))
    except ValueError:
        return False
    return True

"""Checkpoints of transformers' Trainer."""

from __future__ import annotations

from pathlib import Path


def last_checkpoint(folder: Path) -> str | None:
    """The latest checkpoint that was written to its end: its trainer_state.json is written last."""
    found = [path.parent for path in folder.glob("checkpoint-*/trainer_state.json") if path.parent.name.removeprefix("checkpoint-").isdigit()]
    return str(max(found, key=lambda path: int(path.name.removeprefix("checkpoint-")))) if found else None

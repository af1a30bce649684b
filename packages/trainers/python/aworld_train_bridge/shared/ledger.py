"""What this process counted, in JSON Lines files of the run directory: one file a process, a line each append."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Iterator, Mapping


class Ledger:
    """Appends to `<run path>/ledger/<incarnation>/<name>-<pid>.jsonl`; without a run path nothing is written."""

    def __init__(self, run_path: Path | None, incarnation: str) -> None:
        self.folder = None if run_path is None else run_path / "ledger" / incarnation
        self._files: dict[str, int] = {}

    def write(self, name: str, record: Mapping[str, Any]) -> None:
        """One line, handed to the system in one write, so that a killed process leaves at most one torn line, its last."""
        if self.folder is None:
            return
        line = json.dumps(record, ensure_ascii=False, allow_nan=False, separators=(",", ":")) + "\n"
        os.write(self._file(name), line.encode())

    def close(self) -> None:
        for file in self._files.values():
            os.close(file)
        self._files.clear()

    def _file(self, name: str) -> int:
        if name not in self._files:
            assert self.folder is not None
            self.folder.mkdir(parents=True, exist_ok=True)
            path = self.folder / f"{name}-{os.getpid()}.jsonl"
            self._files[name] = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        return self._files[name]


def ledger_of_environment(environment: Mapping[str, str] = os.environ) -> Ledger:
    """The ledger of the run and incarnation that AWORLD_TRAIN_RUN_PATH and AWORLD_TRAIN_INCARNATION name."""
    run_path, incarnation = environment.get("AWORLD_TRAIN_RUN_PATH"), environment.get("AWORLD_TRAIN_INCARNATION")
    return Ledger(Path(run_path) if run_path and incarnation else None, incarnation or "")


def read_ledger(folder: Path, name: str) -> Iterator[dict[str, Any]]:
    """The records `name` of every process; a torn last line is left out."""
    for path in sorted(folder.glob(f"{name}-*.jsonl")):
        *lines, torn = path.read_bytes().split(b"\n")
        for line in lines:
            yield json.loads(line)

"""What the modules of frameworks do alike: ``python -m aworld_train_bridge.NAME PLAN --metrics FILE`` trains, ``… --check`` reads configurations."""

from __future__ import annotations

import argparse
import difflib
import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Iterable, Mapping, Sequence

from ..errors import RunError


@dataclass(frozen=True)
class Problem:
    """What is wrong with a configuration; `key` as the user writes it, or None."""

    message: str
    key: str | None = None


@dataclass(frozen=True)
class Checked:
    """What a framework's classes say of a configuration. `exact`: sampler and trainer round alike."""

    version: str
    problems: Sequence[Problem]
    notes: Sequence[str] = ()
    exact: bool = False


def run_module(train: Callable[[Mapping[str, Any], Path], None], check: Callable[[Mapping[str, Any]], Checked]) -> int:
    """PLAN is a JSON file. FILE gets a line {step, data} a step. With ``--check``, each line of standard input is a configuration as JSON, and is answered by a line {version, problems, notes, exact}."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--check", action="store_true")
    parser.add_argument("plan", type=Path, nargs="?")
    parser.add_argument("--metrics", type=Path)
    options = parser.parse_args()
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    # Read when torch is imported. Threads that wait busily take the processor from the agents beside them, and from each other.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    if not options.check:
        train(json.loads(options.plan.read_text(encoding="utf8")), options.metrics)
        return 0
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # frameworks log to stdout
    for line in sys.stdin:
        checked = check(json.loads(line))
        problems = [{"key": each.key, "message": each.message} for each in checked.problems]
        print(json.dumps({"version": checked.version, "problems": problems, "notes": list(checked.notes), "exact": checked.exact}), file=answers, flush=True)
    return 0


def refuse(problems: Sequence[Problem]) -> None:
    """Raises CONFIG_INVALID with all problems, where there are any."""
    if problems:
        raise RunError("CONFIG_INVALID", "\n".join(each.message for each in problems))


def unknown(key: str, known: Iterable[str], where: str, prefix: str = "") -> Problem:
    """A key that `where` does not have, with the one that may be meant."""
    near = difflib.get_close_matches(key, list(known), 1)
    return Problem(f"{prefix}{key} is no {where}" + (f"; did you mean {prefix}{near[0]}?" if near else "."), f"{prefix}{key}")

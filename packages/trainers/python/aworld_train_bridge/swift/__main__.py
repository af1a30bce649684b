"""Trains with ms-swift: ``python -m aworld_train_bridge.swift PLAN --metrics FILE``, or checks configurations: ``… --check``.

PLAN is a JSON file {model, configuration, tasks: {train, test}, order, evaluation: {samples, sampling}, maxPromptTokens,
logprobTolerance, templateArguments, checkpoints}: `configuration` are arguments of `swift rlhf`, `order` lists ids of training
tasks as they are drawn, and null has all of them drawn by swift. FILE gets a line {step, data} a step. With ``--check`` each line of
standard input is JSON {configuration, model, names}, where an unknown key may be meant for one of the names; a line on standard output
answers it with {version, problems, notes, exact}. Without a model, arguments are only looked up by their names. The channel's address comes from AWORLD_TRAIN_*.
"""

from __future__ import annotations

import os
import sys
import tempfile
from importlib import metadata
from pathlib import Path
from typing import Any, Mapping

from ..shared.module import Checked, Problem, refuse, run_module
from ..shared.tasks import read_tasks
from . import configuration


def check(plan: Mapping[str, Any]) -> Checked:
    problems = configuration.check(plan["configuration"], plan.get("names", ()))
    notes: list[str] = []
    exact = False
    if not problems and plan.get("model"):
        try:
            with tempfile.TemporaryDirectory(prefix="aworld-train-swift-") as folder:
                arguments, notes = configuration.read(plan["configuration"], plan["model"], folder, {"train": folder, "test": folder})
            exact = configuration.is_exact(arguments)
        except (TypeError, ValueError, NotImplementedError) as error:
            problems = [Problem(str(error))]
    return Checked(metadata.version("ms-swift"), problems, notes, exact)


def train(plan: Mapping[str, Any], metrics: Path) -> None:
    from swift.pipelines.train.rlhf import SwiftRLHF
    from swift.trainers import TrainerFactory

    from ..hugging_face.checkpoints import last_checkpoint
    from ..hugging_face.trainer import rollouts_for
    from .trainer import RolloutTrainer, dataset

    refuse(configuration.check(plan["configuration"]))
    arguments, notes = configuration.read(plan["configuration"], plan["model"], plan["checkpoints"], plan["tasks"])
    for note in notes:
        print(note, flush=True)
    tasks = {name: read_tasks(Path(path)) for name, path in plan["tasks"].items() if path}

    class Training(SwiftRLHF):
        """`swift rlhf` whose data are tasks."""

        def _prepare_dataset(self) -> list[Any]:
            return [dataset(tasks["train"], plan.get("order")), dataset(tasks["test"]) if "test" in tasks else None]

        def train(self, trainer: Any) -> None:
            tokenizer = self.template.tokenizer
            exact = configuration.is_exact(self.args)
            with rollouts_for(trainer, plan, metrics, distribution="ms-swift", tokenizer=tokenizer, tasks=tasks, exact=exact):
                trainer.train(last_checkpoint(Path(plan["checkpoints"])))

    TrainerFactory.TRAINER_MAPPING["grpo"] = f"{RolloutTrainer.__module__}.{RolloutTrainer.__name__}"
    Training(arguments).main()


if __name__ == "__main__":
    os.environ.setdefault("USE_HF", "1")
    os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")
    sys.exit(run_module(train, check))

"""Trains with TRL: ``python -m aworld_train_bridge.trl PLAN --metrics FILE``, or checks configurations: ``… --check``.

PLAN is a JSON file {model, configuration, lora, tasks: {train, test}, order, evaluation: {samples, sampling}, maxPromptTokens,
logprobTolerance, templateArguments, checkpoints}: `order` lists ids of training tasks as they are drawn, and null has all of them
drawn by TRL. FILE gets a line {step, data} a step. With ``--check`` each line of standard input is JSON {configuration, lora, names},
where an unknown key may be meant for one of the names; a line on standard output answers it with {version, problems, notes, exact}. The
channel's address comes from AWORLD_TRAIN_*.
"""

from __future__ import annotations

import os
import sys
from importlib import metadata
from pathlib import Path
from typing import Any, Mapping

from ..shared.module import Checked, Problem, refuse, run_module
from ..shared.tasks import read_tasks
from . import configuration


def check(plan: Mapping[str, Any]) -> Checked:
    problems = configuration.check(plan["configuration"], plan.get("lora"), plan.get("names", ()))
    notes: list[str] = []
    exact = False
    if not problems:
        try:
            config, _, notes = configuration.read(plan["configuration"], plan.get("lora"), "checkpoints")
            exact = configuration.is_exact(config)
        except (TypeError, ValueError, NotImplementedError) as error:
            problems = [Problem(str(error))]
    return Checked(metadata.version("trl"), problems, notes, exact)


def train(plan: Mapping[str, Any], metrics: Path) -> None:
    from transformers import AutoTokenizer

    from ..shared.files import read_model_files
    from ..shared.model_facts import stop_token_ids
    from ..hugging_face.checkpoints import last_checkpoint
    from ..hugging_face.trainer import rollouts_for
    from .trainer import RolloutTrainer, dataset, rewards, roll_out

    refuse(configuration.check(plan["configuration"], plan.get("lora")))
    config, lora, notes = configuration.read(plan["configuration"], plan.get("lora"), plan["checkpoints"])
    for note in notes:
        print(note, flush=True)
    tokenizer = AutoTokenizer.from_pretrained(plan["model"], padding_side="left", truncation_side="left")
    tasks = {name: read_tasks(Path(path)) for name, path in plan["tasks"].items() if path}
    trainer = RolloutTrainer(
        model=plan["model"],
        args=config,
        processing_class=tokenizer,
        train_dataset=dataset(tasks["train"], plan.get("order")),
        eval_dataset=dataset(tasks["test"]) if "test" in tasks else None,
        reward_funcs=[rewards],
        rollout_func=roll_out,
        peft_config=lora,
    )
    engine = None
    if config.use_vllm:
        from .vllm_engines import engine_of

        stops = stop_token_ids(read_model_files(tokenizer), tokenizer)
        engine = engine_of(trainer.vllm_generation, stops, lambda: int(trainer.state.global_step), trainer.args.seed)
    exact = configuration.is_exact(config)
    with rollouts_for(trainer, plan, metrics, distribution="trl", tokenizer=tokenizer, tasks=tasks, exact=exact, engine=engine):
        trainer.train(resume_from_checkpoint=last_checkpoint(Path(plan["checkpoints"])))


if __name__ == "__main__":
    os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")
    sys.exit(run_module(train, check))

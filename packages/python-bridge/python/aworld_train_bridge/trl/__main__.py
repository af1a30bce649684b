"""Trains with TRL: ``python -m aworld_train_bridge.trl PLAN --metrics FILE``, or checks a configuration: ``… PLAN --check``.

PLAN is a JSON file {model, configuration, lora, tasks: {train, test}, order, evaluation: {samples, sampling}, maxPromptTokens,
logprobTolerance, templateArguments, checkpoints}: `order` lists ids of training tasks as they are drawn, and null has all of them
drawn by TRL. FILE gets a line {step, data} a step. With ``--check`` only configuration and lora are read, and
names, which an unknown key may be meant for; one line of JSON on standard output says {version, problems, notes, exact}. The
channel's address comes from AWORLD_TRAIN_*.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from importlib import metadata
from pathlib import Path
from typing import Any, Mapping

from ..errors import RunError
from . import configuration


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--check", action="store_true")
    parser.add_argument("plan", type=Path)
    parser.add_argument("--metrics", type=Path)
    options = parser.parse_args()
    os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    plan = json.loads(options.plan.read_text(encoding="utf8"))
    if options.check:
        print(json.dumps(_checked(plan)), flush=True)
    else:
        train(plan, options.metrics)
    return 0


def _checked(plan: Mapping[str, Any]) -> dict[str, Any]:
    problems = configuration.check(plan["configuration"], plan.get("lora"), plan.get("names", ()))
    notes: list[str] = []
    exact = False
    if not problems:
        try:
            config, _, notes = configuration.read(plan["configuration"], plan.get("lora"), "checkpoints")
            exact = configuration.is_exact(config)
        except (TypeError, ValueError, NotImplementedError) as error:
            problems = [configuration.Problem(str(error))]
    return {
        "version": metadata.version("trl"),
        "problems": [{"key": each.key, "message": each.message} for each in problems],
        "notes": notes,
        "exact": exact,
    }


def train(plan: Mapping[str, Any], metrics: Path) -> None:
    from transformers import AutoTokenizer

    from ..driver.batch_accounts import BatchAccounts
    from ..driver.engines import ModelEngine
    from ..driver.files import read_model_files
    from ..driver.model_facts import Framework, Limits, stop_token_ids, to_greeting
    from ..driver.rollouts import Rollouts
    from ..driver.settings import read_settings
    from .trainer import RolloutSource, RolloutTrainer, StepLog, Tasks, rewards

    if problems := configuration.check(plan["configuration"], plan.get("lora")):
        raise RunError("CONFIG_INVALID", "\n".join(each.message for each in problems))
    settings = read_settings({"deadline_s": plan.get("deadlineSeconds")})
    config, lora, notes = configuration.read(plan["configuration"], plan.get("lora"), plan["checkpoints"])
    for note in notes:
        print(note, flush=True)
    tokenizer = AutoTokenizer.from_pretrained(plan["model"], padding_side="left", truncation_side="left")
    tasks = {name: Tasks(Path(path)) for name, path in plan["tasks"].items() if path}
    test = tasks.get("test")
    trainer = RolloutTrainer(
        model=plan["model"],
        args=config,
        processing_class=tokenizer,
        train_dataset=tasks["train"].dataset(plan.get("order")),
        eval_dataset=test.dataset() if test else None,
        reward_funcs=[rewards],
        rollout_func=lambda prompts, trainer: trainer.source(prompts, trainer),
        peft_config=lora,
    )
    version = lambda: int(trainer.state.global_step)  # noqa: E731
    stops = stop_token_ids(read_model_files(tokenizer), tokenizer)
    context = getattr(trainer.model.config.get_text_config(), "max_position_embeddings", None)
    if not config.use_vllm:
        engine: Any = ModelEngine(
            lambda: trainer.accelerator.unwrap_model(trainer.model),
            tokenizer.decode,
            stops,
            context=context or sys.maxsize,
            version=version,
            precision=trainer.accelerator.autocast,
            seed=config.seed + trainer.accelerator.process_index,
        )
    else:
        from .vllm_engines import engine_of

        engine = engine_of(trainer.vllm_generation, stops, version)
    limits = Limits(int(plan["maxPromptTokens"]), int(config.max_completion_length), context)
    rollouts = Rollouts(
        settings,
        lambda: to_greeting(
            settings,
            framework=Framework("trl", metadata.version("trl")),
            model=plan["model"],
            tokenizer=tokenizer,
            template_arguments=plan.get("templateArguments") or {},
            limits=limits,
        ),
        engine,
    )
    try:
        trainer.accounts = BatchAccounts(rollouts.ledger, plan.get("logprobTolerance") if configuration.is_exact(config) else None)
        sampling = {"temperature": config.temperature, "topP": 1.0, "topK": -1, "repetitionPenalty": 1.0}
        trainer.source = RolloutSource(rollouts, trainer.accounts, tasks["train"], test, sampling=sampling, filler=stops[0])
        evaluation = plan.get("evaluation") or {}
        trainer.evaluation = {"samples": int(evaluation.get("samples", 1)), "sampling": {**sampling, **(evaluation.get("sampling") or {})}}
        trainer.add_callback(StepLog(metrics, trainer.accounts, trainer.source))
        trainer.train(resume_from_checkpoint=last_checkpoint(Path(plan["checkpoints"])))
    finally:
        rollouts.close()


def last_checkpoint(folder: Path) -> str | None:
    """The latest checkpoint that was written to its end: its trainer_state.json is written last."""
    found = [path.parent for path in folder.glob("checkpoint-*/trainer_state.json") if path.parent.name.removeprefix("checkpoint-").isdigit()]
    return str(max(found, key=lambda path: int(path.name.removeprefix("checkpoint-")))) if found else None


if __name__ == "__main__":
    sys.exit(main())

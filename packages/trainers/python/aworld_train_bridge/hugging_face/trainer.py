"""What a GRPOTrainer of TRL's line does alike when its rollouts are those of AWorld Train."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import Any, Callable, Iterator, Mapping, Sequence

import torch

from ..shared.batch_accounts import BatchAccounts
from ..shared.batch_record import record_batch, records_batches
from ..shared.engines import Engine, ModelEngine
from ..shared.files import read_model_files
from ..shared.model_facts import Framework, Limits, stop_token_ids, to_greeting
from ..shared.rollouts import Rollouts
from ..shared.settings import read_settings
from ..shared.tasks import Tasks
from .rollout_source import RolloutSource
from .step_log import StepLog


class TrainsRollouts:
    """Mixed into a GRPOTrainer, before it: compares every batch with its rows as it is trained, and evaluates by rollouts alone."""

    source: RolloutSource
    accounts: BatchAccounts
    evaluation: Mapping[str, Any]
    """{samples, sampling} of an evaluation."""
    recomputed: Any = None
    """Logprobs [rows, tokens] of the batch under way, with their graph."""

    def compare(self, inputs: Any, loss: Any) -> None:
        """Finds the rows in a batch, and hands them to `account`."""
        raise NotImplementedError

    def account(
        self,
        prompts: Sequence[list[int]],
        responses: Sequence[list[int]],
        masks: Sequence[Any],
        advantages: Sequence[Any],
        cut: Callable[[Any], Sequence[Any]],
        loss: Any,
        carried: Sequence[Any] | None = None,
    ) -> None:
        """Compares a batch with its rows. `cut` takes the responses out of a tensor as wide as `recomputed`; the rest is as in BatchAccounts."""
        trainer: Any = self
        computed, step = self.recomputed, trainer.state.global_step
        logprobs = None if computed is None else cut(computed.detach())
        self.accounts.compare(prompts, responses, masks, logprobs, step, carried)
        if records_batches() and computed is not None and computed.requires_grad:
            gradients = cut(torch.autograd.grad(loss, computed, retain_graph=True)[0])
            recorded = [each.detach() for each in advantages]
            record_batch(self.accounts.ledger, step + 1, float(loss.detach()), prompts, responses, masks, recorded, logprobs, gradients)

    def compute_loss(self, model: Any, inputs: Any, *args: Any, **options: Any) -> Any:
        self.recomputed = None
        loss = super().compute_loss(model, inputs, *args, **options)  # type: ignore[misc]
        if model.training:
            self.compare(inputs, loss)
        self.recomputed = None
        return loss

    def _get_per_token_logps_and_entropies(self, *args: Any, **options: Any) -> Any:
        result = super()._get_per_token_logps_and_entropies(*args, **options)  # type: ignore[misc]
        if result[0].requires_grad:
            self.recomputed = result[0]
        return result

    def evaluate(self, *_: Any, **__: Any) -> dict[str, float]:
        trainer: Any = self
        metrics = self.source.evaluate(trainer.state.global_step, **self.evaluation)
        trainer.log(metrics)
        trainer.control = trainer.callback_handler.on_evaluate(trainer.args, trainer.state, trainer.control, metrics)
        return metrics


@contextmanager
def rollouts_for(
    trainer: Any, plan: Mapping[str, Any], metrics: Path, *, distribution: str, tokenizer: Any, tasks: Mapping[str, Tasks], exact: bool, engine: Engine | None = None
) -> Iterator[None]:
    """Opens the channel for a trainer and gives it what it asks for rows; its own model samples unless there is an `engine`.

    `plan` {model, maxPromptTokens, logprobTolerance, evaluation, templateArguments, deadlineSeconds} is that of the trainer's
    module, `distribution` the name of its package. `exact`: sampler and trainer round alike, so that the tolerance is kept.
    """
    config = trainer.args
    settings = read_settings({"deadline_s": plan.get("deadlineSeconds")})
    stops = stop_token_ids(read_model_files(tokenizer), tokenizer)
    context = getattr(trainer.model.config.get_text_config(), "max_position_embeddings", None)
    engine = engine or ModelEngine(
        lambda: trainer.accelerator.unwrap_model(trainer.model),
        tokenizer.decode,
        stops,
        context=context or sys.maxsize,
        version=lambda: int(trainer.state.global_step),
        precision=trainer.accelerator.autocast,
        seed=config.seed + trainer.accelerator.process_index,
    )
    rollouts = Rollouts(
        settings,
        lambda: to_greeting(
            settings,
            framework=Framework(distribution, metadata.version(distribution)),
            model=plan["model"],
            tokenizer=tokenizer,
            template_arguments=plan.get("templateArguments") or {},
            limits=Limits(int(plan["maxPromptTokens"]), int(config.max_completion_length), context),
        ),
        engine,
    )
    try:
        trainer.accounts = BatchAccounts(rollouts.ledger, plan.get("logprobTolerance") if exact else None)
        sampling = {"temperature": config.temperature, "topP": 1.0, "topK": -1, "repetitionPenalty": 1.0}
        trainer.source = RolloutSource(rollouts, trainer.accounts, tasks["train"], tasks.get("test"), sampling=sampling, filler=stops[0])
        evaluation = plan.get("evaluation") or {}
        trainer.evaluation = {"samples": int(evaluation.get("samples", 1)), "sampling": {**sampling, **(evaluation.get("sampling") or {})}}
        trainer.add_callback(StepLog(metrics, trainer.accounts, trainer.source))
        yield
    finally:
        rollouts.close()

"""GRPOTrainer with rollouts of AWorld Train: `rollout_func` of TRL 1.16, its batches compared with the rows, its evaluation of tasks."""

from __future__ import annotations

from typing import Any, Iterable, Sequence

from trl import GRPOTrainer

from ..hugging_face.trainer import TrainsRollouts


def dataset(tasks: Iterable[str], order: Sequence[str] | None = None) -> Any:
    """Prompts that carry the task's id, which is all that TRL needs of a task; `order` for other tasks than each one once."""
    from datasets import Dataset

    return Dataset.from_list([{"prompt": id} for id in order or tasks])


def roll_out(prompts: list[str], trainer: Any) -> dict[str, list[Any]]:
    """TRL's `rollout_func`: a row for each prompt, which arrives once for each of its generations."""
    rows = trainer.source.rows(prompts, trainer.state.global_step + 1, trainer.accelerator.process_index)
    return {
        "prompt_ids": [row.prompt_ids for row in rows],
        "completion_ids": [row.response_ids for row in rows],
        "logprobs": [row.response_logprobs for row in rows],
        "env_mask": [row.response_mask for row in rows],
        "reward": [row.reward for row in rows],
    }


def rewards(reward: list[float | None], **_: Any) -> list[float | None]:
    """The reward that came with each row; None is left out of the mean of its group."""
    return reward


class RolloutTrainer(TrainsRollouts, GRPOTrainer):
    """Finds the rows in a batch of TRL."""

    def compare(self, inputs: dict[str, Any], loss: Any) -> None:
        prompts = [ids[mask.bool()].tolist() for ids, mask in zip(inputs["prompt_ids"], inputs["prompt_mask"], strict=True)]
        lengths = [int(mask.sum()) for mask in inputs["completion_mask"]]
        trained = inputs["completion_mask"] * inputs["tool_mask"] if "tool_mask" in inputs else inputs["completion_mask"]
        cut = lambda tensor: [row[:length] for row, length in zip(tensor, lengths, strict=True)]  # noqa: E731
        responses = [ids.tolist() for ids in cut(inputs["completion_ids"])]
        self.account(prompts, responses, cut(trained), inputs["advantages"], cut, loss)

    def evaluate(self, *args: Any, **options: Any) -> dict[str, float]:
        # TRL gives vLLM new weights before a training batch alone; an evaluation would sample those of the update before.
        if self.use_vllm and self.state.global_step != self._last_loaded_step:
            self.vllm_generation.sync_weights()
            self._last_loaded_step = self.state.global_step
        return super().evaluate(*args, **options)

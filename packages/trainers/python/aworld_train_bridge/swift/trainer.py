"""GRPOTrainer with rollouts of AWorld Train: ms-swift's `_engine_infer`, its batches compared with the rows, its evaluation of tasks."""

from __future__ import annotations

from typing import Any, Iterable, Sequence

import torch
from swift.infer_engine.protocol import ChatCompletionResponse, ChatCompletionResponseChoice, ChatMessage, RolloutOutput, UsageInfo
from swift.rl_core.advantage import compute_advantages_dynamic
from swift.rlhf_trainers.grpo_trainer import GRPOTrainer

from ..shared.batch_accounts import mismatch
from ..shared.rows import Row
from ..hugging_face.trainer import TrainsRollouts


def dataset(tasks: Iterable[str], order: Sequence[str] | None = None) -> Any:
    """Messages that carry the task's id, which is all that swift needs of a task; `order` for other tasks than each one once."""
    from datasets import Dataset

    return Dataset.from_list([{"messages": [{"role": "user", "content": id}]} for id in order or tasks])


class RolloutTrainer(TrainsRollouts, GRPOTrainer):
    """Answers requests for completions with rows, and finds them again in swift's batches."""

    def _engine_infer(self, infer_requests: Sequence[Any], request_config: Any = None, *, use_tqdm: bool | None = False) -> list[RolloutOutput]:
        ids = [request.messages[-1]["content"] for request in infer_requests]
        rows = self.source.rows(ids, self.state.global_step + 1, self.accelerator.process_index)
        return [self._output(row) for row in rows]

    def _output(self, row: Row) -> RolloutOutput:
        """A row as one message of its prompt and its response, so that swift encodes nothing; the mask says what was sampled.

        Swift needs a token to train in every row, so that the one of a rollout that failed is unmasked until the batch is made.
        """
        mask = row.response_mask if row.reward is not None else [1]
        prompt, text = self.template.tokenizer.decode(row.prompt_ids), self.template.tokenizer.decode(row.response_ids)
        choice = ChatCompletionResponseChoice(index=0, message=ChatMessage(role="assistant", content=text), finish_reason="stop")
        return RolloutOutput(
            response=ChatCompletionResponse(model="policy", choices=[choice], usage=UsageInfo(0, 0, 0)),
            messages=[{"role": "user", "content": prompt}, {"role": "assistant", "content": text}],
            response_token_ids=[row.prompt_ids + row.response_ids],
            response_loss_mask=[[0] * len(row.prompt_ids) + mask],
            rollout_logprobs=[[logprob for logprob, sampled in zip(row.response_logprobs, mask, strict=True) if sampled]],
            rollout_infos={"reward": row.reward},
        )

    def _apply_chat_template_to_messages_list(self, messages_list: list[Any]) -> list[str]:
        """Prompts as swift logs completions with them: they are rendered already."""
        return [messages[0]["content"] for messages in messages_list]

    def _prepare_batch_inputs(self, samples: list[Any]) -> list[dict[str, Any]]:
        batches = super()._prepare_batch_inputs(samples)
        failed = [sample.rollout_infos["reward"] is None for sample in samples]
        if any(failed):
            rows = torch.tensor(failed, device=self.accelerator.device).split([len(each["grpo_batch"].completion_mask) for each in batches])
            for batch, empty in zip(batches, rows, strict=True):
                batch["grpo_batch"].completion_mask[empty] = False
            tokens = sum(each["grpo_batch"].completion_mask.sum() for each in batches)
            for batch in batches:
                batch["grpo_batch"].num_items_in_batch = tokens
        return batches

    def _compute_advantages(self, samples: list[Any], rewards_per_func: Any, batch_encoded_inputs: list[Any]) -> Any:
        """As swift does, but that a rollout without a reward has no part in its group: swift counts it as 0."""
        scored = ~rewards_per_func.isnan().any(dim=1)
        if scored.all():
            return super()._compute_advantages(samples, rewards_per_func, batch_encoded_inputs)
        advantages = torch.zeros_like(rewards_per_func[:, 0])
        kept = [sample for sample, has in zip(samples, scored.tolist(), strict=True) if has]
        divergences = None
        if self.kl_in_reward and self.beta != 0:  # swift's default with rloo and reinforce_plus_plus
            batches = [each["grpo_batch"] for each in batch_encoded_inputs]
            terms = [((each.old_per_token_logps - each.ref_per_token_logps) * each.completion_mask).sum(-1) for each in batches]
            divergences = torch.cat(terms)[scored]
        advantages[scored], rewards = compute_advantages_dynamic(
            rewards_per_func[scored],
            self.reward_weights,
            [sample.prompt_id for sample in kept],
            [sample.request_id for sample in kept],
            advantage_estimator=self.advantage_estimator,
            scale_rewards=self.scale_rewards,
            kl_in_reward=self.kl_in_reward,
            beta=self.beta,
            kl_values=divergences,
        )
        self._metrics["train"]["reward"].append(rewards.mean().item())
        return advantages

    def compare(self, inputs: Any, loss: Any) -> None:
        """The rows of a batch as they are trained; a response begins with the first token of its mask, as in the rows."""
        inputs = inputs[0] if isinstance(inputs, list) else inputs
        batch = inputs["grpo_batch"]
        if batch.rollout_per_token_logps is None:
            raise mismatch("it carries no logprobs of what was sampled, whose number differs from that of the tokens that are trained")
        if self.recomputed is None:  # the fused loss of use_liger_kernel shows none; these are of the weights that sampled
            self.recomputed = batch.old_per_token_logps
        ids, lengths = inputs["model_inputs"]["input_ids"], inputs["model_inputs"]["attention_mask"].sum(1).tolist()
        masks = _widened(batch.completion_mask.long(), ids)
        starts = [int(mask.argmax()) or 1 for mask in masks]
        cut = lambda window: [row[start:length] for row, start, length in zip(_widened(window, ids), starts, lengths, strict=True)]  # noqa: E731
        prompts = [row[:start].tolist() for row, start in zip(ids, starts, strict=True)]
        responses = [row.tolist() for row in cut(ids)]
        # transformers divides each micro-batch's loss by their number before it goes backward, and swift multiplies it before.
        loss = loss / self.current_gradient_accumulation_steps
        self.account(prompts, responses, cut(masks), cut(batch.advantages), cut, loss, carried=cut(batch.rollout_per_token_logps))


def _widened(window: Any, ids: Any) -> Any:
    """A window on the ends of padded rows [rows, kept] as wide as the rows [rows, tokens]; 0 before it."""
    wide = window.new_zeros(ids.shape)
    wide[:, ids.shape[1] - window.shape[1] :] = window
    return wide

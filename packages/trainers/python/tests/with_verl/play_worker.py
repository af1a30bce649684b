"""One worker process of verl without its trainer: agent loops over a toy policy against a real rollout service.

Reads scenarios from stdin, one JSON object a line: {"model", "rollouts", "environment": {"AWORLD_TRAIN_CHANNEL": …}, …}. Prints one
JSON line for each: what every rollout returned, what was sampled, and the times. The end of stdin ends it.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from typing import Any

from omegaconf import OmegaConf
from transformers import AutoTokenizer
from verl.experimental.agent_loop.agent_loop import DictConfigWrap

from aworld_train_bridge.errors import ChannelError
from aworld_train_bridge.verl.agent_loop import AworldTrainAgentLoop, _workers
from aworld_train_bridge.verl.resolve_config import compose
from toy_policy import ToyPolicy


def faults(name: str | None):
    """What the policy does wrong, by name."""
    if name == "nan":
        return lambda call, ids, logprobs: (ids, [float("nan")] * len(ids))
    if name == "abort-once":
        return lambda call, ids, logprobs: ([], []) if call == 1 else None
    if name == "beyond-vocabulary":
        return lambda call, ids, logprobs: ([999_999], [-1.0])
    return None


async def main(given: dict[str, Any]) -> dict[str, Any]:
    model = given["model"]
    limits = [f"data.max_prompt_length={given.get('maxPromptTokens', 512)}", f"data.max_response_length={given.get('maxResponseTokens', 512)}"]
    config = compose([f"actor_rollout_ref.model.path={model}", *limits])
    tokenizer = AutoTokenizer.from_pretrained(model)
    if given.get("template"):
        tokenizer.chat_template = given["template"]
    policy = ToyPolicy(tokenizer, given.get("delayMs", 0) / 1000)
    policy.fault = faults(given.get("fault"))
    sampling = {"temperature": 1.0, "top_p": 1.0, "top_k": -1, "repetition_penalty": 1.0, "logprobs": True}
    split = given.get("split", "train")

    async def rollout(n: int) -> dict[str, Any]:
        loop = AworldTrainAgentLoop(
            trainer_config=DictConfigWrap(config), server_manager=policy, tokenizer=tokenizer, processor=None, dataset_cls=None,
            data_config=DictConfigWrap(config.data), hf_model_type="qwen3", name="aworld", deadline_s=given.get("deadlineSeconds"),
        )  # fmt: skip
        row = {
            "raw_prompt": [{"role": "user", "content": given.get("content", f"task {n}")}], "data_source": "toy", "extra_info": {"split": split},
            "uid": f"{given.get('uid', 'u')}{n // 4}", "session_id": n % 4, "global_steps": 1,
        }  # fmt: skip
        try:
            outputs = await loop.run(sampling, **row)
        except ChannelError as error:
            return {"error": error.to_record()}
        except asyncio.CancelledError:
            return {"error": {"code": "cancelled"}}
        rows = [{"prompt": len(o.prompt_ids), "response": len(o.response_ids), "mask": sum(o.response_mask), "reward": o.reward_score, "info": o.extra_fields["reward_extra_info"]} for o in outputs]
        return {"key": outputs[-1].extra_fields["aworld_train_key"], "rows": rows, "turns": outputs[-1].num_turns}

    tasks = [asyncio.create_task(rollout(n)) for n in range(given.get("rollouts", 4))]
    if given.get("warm"):
        await asyncio.gather(*tasks)
        policy.calls = policy.tokens = 0
        given = {**given, "uid": "second"}
        cpu, wall = time.process_time(), time.perf_counter()
        tasks = [asyncio.create_task(rollout(n)) for n in range(given.get("rollouts", 4))]
    else:
        cpu, wall = time.process_time(), time.perf_counter()
    if given.get("cancelAfterMs"):
        await asyncio.sleep(given["cancelAfterMs"] / 1000)
        for task in tasks:
            task.cancel()
    results = await asyncio.gather(*tasks)
    times = {"cpuSeconds": time.process_time() - cpu, "wallSeconds": time.perf_counter() - wall}
    # What was sampled for nobody ends before the process does, so that the ledger has it.
    await asyncio.sleep(given.get("delayMs", 0) / 1000 + 0.2)
    await _workers[asyncio.get_running_loop()].channel.close()
    return {"results": results, "calls": policy.calls, "tokens": policy.tokens, **times}


if __name__ == "__main__":
    for line in sys.stdin:
        scenario = json.loads(line)
        os.environ.update(scenario.get("environment", {}))
        print(json.dumps(asyncio.run(main(scenario))), flush=True)

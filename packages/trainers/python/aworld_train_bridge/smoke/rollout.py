"""For smoke tests on CPU: the rollout engine `cpu_hf` of verl 0.9, a Ray actor that samples from the model being trained."""

import os
from collections.abc import Iterable
from typing import Any

import ray
import torch
from aworld_train_bridge.shared.model_facts import Limits
from aworld_train_bridge.sample.server import SamplingServer
from verl.workers.rollout.base import BaseRollout
from verl.workers.rollout.replica import RolloutReplica, TokenOutput


class CpuServer:
    """The Ray actor that verl's client and trainer call (`LLMServerClient`, `CheckpointEngineManager`)."""

    def __init__(self, path: str, limits: Limits, seed: int, threads: int) -> None:
        from aworld_train_bridge.shared.ledger import ledger_of_environment
        from transformers import AutoModelForCausalLM, AutoTokenizer

        torch.set_num_threads(threads)
        model = AutoModelForCausalLM.from_pretrained(path, attn_implementation="sdpa").float().eval()
        tokenizer = AutoTokenizer.from_pretrained(path)
        ends = model.generation_config.eos_token_id if model.generation_config else None
        ends = [ends] if isinstance(ends, int) else list(ends or ())
        if tokenizer.eos_token_id is not None:
            ends.append(tokenizer.eos_token_id)
        if not ends:
            raise ValueError(f"Neither tokenizer nor generation_config.json of {path} names a token that ends a turn.")
        ledger = ledger_of_environment()
        self._server = SamplingServer(
            model, lambda ids: tokenizer.decode(ids), ends, limits, seed=seed, record=ledger.write
        )

    async def generate(
        self, prompt_ids: list[int], sampling_params: dict[str, Any], request_id: str, **given: Any
    ) -> TokenOutput:
        data = sorted(name for name, value in given.items() if value)
        if data:
            raise ValueError(f"The CPU sampler takes tokens only, and the request has {', '.join(data)}.")
        return TokenOutput(**await self._server.generate(prompt_ids, sampling_params, request_id))

    async def load_weights(self, sent: dict[str, torch.Tensor], version: int | None) -> int:
        return await self._server.load_weights(sent, version)

    async def set_global_steps(self, global_steps: int) -> None:
        self._server.version = global_steps

    async def abort_all_requests(self, reject_request: bool = False) -> dict[str, int]:
        return {"aborted_count": await self._server.abort_all(reject=reject_request)}

    async def resume_generation(self) -> None:
        self._server.resume()

    async def sleep(self) -> None:
        await self._server.sleep()

    async def wake_up(self) -> None:
        self._server.wake()

    async def ready(self) -> None:
        """Answers once the model is loaded."""

    async def _nothing(self, *_: Any, **__: Any) -> None: ...

    clear_kv_cache = release_kv_cache = resume_kv_cache = start_profile = stop_profile = _nothing


class CpuReplica(RolloutReplica):
    """One server on CPU a training rank (`init_hybrid`)."""

    async def launch_servers(self) -> None:
        if self.world_size != 1:
            raise ValueError(
                f"The CPU replica is one process, and rollout asks for {self.world_size}; "
                "set tensor_model_parallel_size, data_parallel_size and pipeline_model_parallel_size to 1."
            )
        config = self.config
        limits = Limits(config.prompt_length, config.response_length, self._context())
        server = (
            ray.remote(CpuServer)
            .options(name=_server_name(self.replica_rank), num_cpus=0.1, max_concurrency=self.max_concurrency)
            .remote(
                str(self.model_config.path),
                limits,
                int(config.get("seed", 0) or 0) + self.replica_rank,
                int(os.environ.get("AWORLD_TRAIN_SMOKE_THREADS", "1")),
            )
        )
        await server.ready.remote()
        self.servers, self._server_handle = [server], server
        self._server_address = _server_name(self.replica_rank)

    def _context(self) -> int:
        from transformers import AutoConfig

        model = AutoConfig.from_pretrained(str(self.model_config.path)).max_position_embeddings
        return min(model, self.config.max_model_len or model)


class CpuAdapter(BaseRollout):
    """The trainer's side: pushes the weights of its rank to the server of that rank."""

    async def resume(self, tags: list[str]) -> None: ...

    async def release(self) -> None: ...

    async def update_weights(
        self,
        weights: Iterable[tuple[str, torch.Tensor]],
        global_steps: int | None = None,
        wire_format: str = "named_tensors",
        **_: Any,
    ) -> None:
        if wire_format != "named_tensors":
            raise ValueError(f"The CPU replica takes weights as named tensors, not as {wire_format}.")
        sent = {}
        for name, tensor in weights:
            whole = tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor
            sent[name] = whole.detach().to("cpu", torch.float32, copy=True)
        await ray.get_actor(_server_name(int(os.environ["RANK"]))).load_weights.remote(sent, global_steps)


def _server_name(rank: int) -> str:
    return f"aworld_train_cpu_{rank}"

import asyncio
import json
import os
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import torch
from aworld_train_bridge.shared.model_facts import Limits
from aworld_train_bridge.smoke.rollout import CpuAdapter, CpuReplica, CpuServer
from tiny_model import END, tiny_model
from tokenizers import Tokenizer, models
from transformers import PreTrainedTokenizerFast

LIMITS = Limits(prompt=20, response=40, context=96)


def write_model(folder: str, end: str | None = "t7") -> None:
    model = tiny_model()
    model.generation_config.eos_token_id = END if end else None
    model.save_pretrained(folder)
    tokenizer = Tokenizer(models.WordLevel({f"t{id}": id for id in range(41)}, unk_token="t0"))
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, **({"eos_token": end} if end else {})).save_pretrained(folder)


class Server(unittest.IsolatedAsyncioTestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.model, self.run = f"{folder.name}/model", Path(folder.name) / "run"
        environment = {"AWORLD_TRAIN_RUN_PATH": str(self.run), "AWORLD_TRAIN_INCARNATION": "i1"}
        changed = mock.patch.dict(os.environ, environment)
        changed.start()
        self.addCleanup(changed.stop)

    async def test_answers_as_verl_expects_and_writes_its_ledger(self) -> None:
        write_model(self.model)
        server = CpuServer(self.model, LIMITS, seed=3, threads=1)
        await server.set_global_steps(4)
        asked = [server.generate([1, row], {"temperature": 1.0, "logprobs": True}, f"r{row}", image_data=None) for row in range(8)]
        outputs = await asyncio.gather(*asked)
        for output in outputs:
            self.assertEqual((output.stop_reason, output.num_preempted, output.extra_fields), ("completed", 0, {"global_steps": 4}))
            self.assertEqual(len(output.token_ids), len(output.log_probs))
            self.assertTrue(output.token_ids[-1] == END or len(output.token_ids) == 40)
        self.assertTrue(any(output.token_ids[-1] == END for output in outputs))
        (file,) = (self.run / "ledger" / "i1").glob("engine-*.jsonl")
        lines = [json.loads(line) for line in file.read_text().splitlines()]
        self.assertEqual({line["requestId"]: line["tokens"] for line in lines}, {f"r{row}": len(o.token_ids) for row, o in enumerate(outputs)})
        with self.assertRaisesRegex(ValueError, "image_data"):
            await server.generate([1], {}, "r", image_data=["picture"])
        await server._server.close()

    def test_a_model_whose_turns_have_no_end_is_refused(self) -> None:
        write_model(self.model, end=None)
        with self.assertRaisesRegex(ValueError, "names a token that ends a turn"):
            CpuServer(self.model, LIMITS, seed=3, threads=1)


class Adapter(unittest.IsolatedAsyncioTestCase):
    async def test_sends_whole_tensors_to_the_server_of_its_rank(self) -> None:
        sent: list[tuple[dict[str, torch.Tensor], int | None]] = []

        class Actor:
            class load_weights:  # noqa: N801 - a method of a Ray actor, called by .remote
                @staticmethod
                async def remote(state: dict[str, torch.Tensor], version: int | None) -> None:
                    sent.append((state, version))

        weight = torch.ones(2, 3, dtype=torch.bfloat16)
        adapter = object.__new__(CpuAdapter)
        with mock.patch.dict(os.environ, {"RANK": "1"}), mock.patch("ray.get_actor", side_effect={"aworld_train_cpu_1": Actor}.__getitem__):
            await adapter.update_weights(iter([("a", weight)]), global_steps=7)
            with self.assertRaisesRegex(ValueError, "delta_flush"):
                await adapter.update_weights(iter([]), wire_format="delta_flush")
        ((state, version),) = sent
        weight.zero_()
        self.assertEqual((state["a"].dtype, state["a"].tolist(), version), (torch.float32, [[1.0] * 3] * 2, 7))


class Replica(unittest.IsolatedAsyncioTestCase):
    async def test_a_replica_of_several_processes_is_refused(self) -> None:
        replica = object.__new__(CpuReplica)
        replica.world_size = 2
        with self.assertRaisesRegex(ValueError, "tensor_model_parallel_size"):
            await replica.launch_servers()


if __name__ == "__main__":
    unittest.main()

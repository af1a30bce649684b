"""The agent loop in verl's own worker, with Ray and TransferQueue: what comes in, and what verl stores of it."""

import asyncio
import os
import tempfile
import time
import unittest
import uuid
from pathlib import Path

import numpy as np
import ray
import torch
import transfer_queue as tq
from aworld_train_bridge.shared.ledger import read_ledger
from aworld_train_bridge.errors import ChannelError
from aworld_train_bridge.frames import int32
from aworld_train_bridge.verl import agent_loop
from aworld_train_bridge.verl.resolve_config import compose
from omegaconf import OmegaConf
from socket_service import TOKEN, SocketService
from verl.trainer.ppo import core_algos
from verl.trainer.ppo.v1.agent_loop_tq import AgentLoopWorkerTQ
from verl.trainer.ppo.v1.utils import compute_advantage_for_multi_trajectories
from verl.utils import tensordict_utils as tu
from verl.workers.rollout.replica import TokenOutput

MODEL = os.environ["AWORLD_TRAIN_TEST_MODEL"]
EOS = 257


class ToyClient:
    """Stands where verl's client of its rollout servers stands; keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: list[dict] = []
        self.answer = TokenOutput(token_ids=[3, 4, EOS], log_probs=[-0.1, -0.2, -0.3], stop_reason="completed", num_preempted=1, extra_fields={"min_global_steps": 1, "max_global_steps": 2})

    async def generate(self, request_id, *, prompt_ids, sampling_params, **more):
        self.asked.append({"request_id": request_id, "prompt_ids": prompt_ids, "sampling_params": dict(sampling_params), **more})
        sampling_params["mutated"] = True
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def config(folder: str, **entry):
    path = Path(folder, "agent.yaml")
    OmegaConf.save(OmegaConf.create([{"name": "aworld", "_target_": "aworld_train_bridge.verl.agent_loop.AworldTrainAgentLoop", "module": "./x.ts#Loop", **entry}]), path)
    return compose(
        [
            f"actor_rollout_ref.model.path={MODEL}",
            "actor_rollout_ref.rollout.name=vllm",
            "actor_rollout_ref.rollout.n=2",
            f"actor_rollout_ref.rollout.agent.agent_loop_config_path={path}",
            "actor_rollout_ref.rollout.agent.default_agent_loop=aworld",
            "data.max_prompt_length=32",
            "data.max_response_length=16",
            "trainer.device=cpu",
            "transfer_queue.backend.SimpleStorage.num_data_storage_units=1",
        ],
    )


def batch(split: str, validate: bool = False, **columns):
    extra = np.empty(1, dtype=object)
    extra[0] = {"split": split, "index": np.int64(3)}
    messages = np.empty(1, dtype=object)
    messages[0] = [{"role": "user", "content": "hi"}]
    uid = str(uuid.uuid4())
    rows = {
        "raw_prompt": messages, "extra_info": extra, "data_source": np.array(["toy"], dtype=object), "uid": np.array([uid], dtype=object),
        "index": np.array([3]), "tools_kwargs": np.array([{}], dtype=object), "interaction_kwargs": np.array([{}], dtype=object),
        "dummy_tensor": torch.zeros(1, 1, dtype=torch.uint8), **columns,
    }  # fmt: skip
    made = tu.get_tensordict(rows)
    tu.assign_non_tensor_data(made, "global_steps", 3)
    if validate:
        tu.assign_non_tensor_data(made, "validate", True)
    return uid, made


class AgentLoopTest(unittest.IsolatedAsyncioTestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.folder = tempfile.TemporaryDirectory(prefix="aworld-train-loop-")
        cls.addClassCleanup(cls.folder.cleanup)
        ray.init(num_cpus=8, include_dashboard=False, _temp_dir=cls.folder.name, log_to_driver=False)
        cls.addClassCleanup(ray.shutdown)
        tq.init(config(cls.folder.name).transfer_queue)
        cls.addClassCleanup(tq.close)

    async def asyncSetUp(self) -> None:
        self.service = SocketService()
        await self.service.__aenter__()
        self.addAsyncCleanup(self.service.__aexit__)
        self.client = ToyClient()
        self.run_path = tempfile.mkdtemp(dir=self.folder.name)
        self.worker = self.make_worker(channel=self.service.url, run="r", incarnation="i", run_path=self.run_path)
        environment = {"AWORLD_TRAIN_CHANNEL_TOKEN": TOKEN}
        os.environ.update(environment)
        self.addCleanup(lambda: [os.environ.pop(name) for name in environment])
        self.addAsyncCleanup(self.close_channel)

    def make_worker(self, **entry):
        return AgentLoopWorkerTQ.__ray_metadata__.modified_class(config(self.folder.name, **entry), self.client, None, None)

    async def close_channel(self) -> None:
        shared = agent_loop._workers.pop(asyncio.get_running_loop(), None)
        if shared is not None:
            await shared.channel.close()

    async def generate(self, split: str, play, validate: bool = False, **columns):
        """Runs one prompt with two sessions; `play` is called for each. Returns stored rows by key, and the prompt's status."""
        uid, made = batch(split, validate, **columns)
        await self.worker.generate_sequences(made)
        self.seen = await play()
        partition = "val" if validate else "train"
        deadline = time.monotonic() + 30
        while (status := (tq.kv_list(partition)[partition][uid])["status"]) == "running":
            self.assertLess(time.monotonic(), deadline)
            await asyncio.sleep(0.02)
        tags = {key: tag for key, tag in tq.kv_list(partition)[partition].items() if key.startswith(f"{uid}_")}
        rows = tq.kv_batch_get(keys=sorted(tags), partition_id=partition) if tags else None
        return uid, status, tags, rows

    async def test_rows_are_stored_with_every_field(self) -> None:
        uid, status, tags, rows = await self.generate("train", lambda: self.play(turns=2, branches=2))
        self.assertEqual(status, "finished")
        self.assertEqual(sorted(tags), [f"{uid}_{session}_{row}" for session in (0, 1) for row in (0, 1)])
        hello = self.seen["hello"].header
        self.assertEqual(hello["limits"], {"maxPromptTokens": 32, "maxResponseTokens": 16, "contextLength": None})
        self.assertEqual(hello["model"], {"name": Path(MODEL).name, "vocabularySize": 752, "stopTokenIds": [257]})
        submit = self.seen["submits"][0]
        self.assertEqual(submit["key"], f"r/i/train/3/{uid}/0")
        self.assertEqual(submit["row"], {"prompt": [{"role": "user", "content": "hi"}], "dataSource": "toy", "rewardModel": None, "extraInfo": {"split": "train", "index": 3}, "index": 3, "columns": {}})
        self.assertEqual(submit["sampling"], {"temperature": 1.0, "topP": 1.0, "topK": -1, "repetitionPenalty": 1.0})
        self.assertEqual(rows["prompts"][1].tolist(), [5, 6])
        self.assertEqual(rows["responses"][1].tolist(), [3, 4, EOS, 1, 3, 4, EOS])
        self.assertEqual(rows["response_mask"][1].tolist(), [1, 1, 1, 0, 1, 1, 1])
        np.testing.assert_allclose(rows["rollout_log_probs"][1], [-0.1, -0.2, -0.3, 0, -0.1, -0.2, -0.3], atol=1e-6)
        self.assertEqual([score.tolist() for score in rows["rm_scores"].unbind()][:2], [[0, 0, 0.5], [0, 0, 0, 0, 0, 0, 0.5]])
        self.assertEqual(list(rows["num_turns"]), [4] * 4)
        extra = list(rows["extra_fields"])[1]
        self.assertEqual((extra["aworld_train_key"], extra["min_global_steps"], extra["reward_extra_info"]), (submit["key"], 1, {"acc": 0.5, "failed": 0.0}))
        self.assertEqual(tags[f"{uid}_0_1"]["max_global_steps"], 1)
        asked = self.client.asked[0]
        self.assertEqual(asked["request_id"], submit["key"])
        self.assertEqual(asked["sampling_params"], {"temperature": 1.0, "top_p": 1, "top_k": -1, "repetition_penalty": 1.0, "logprobs": True, "max_tokens": 4})
        self.assertNotIn("mutated", self.client.asked[1]["sampling_params"])
        sampled = list(read_ledger(Path(self.run_path, "ledger", "i"), "sampled"))
        self.assertEqual([line["tokens"] for line in sampled], [3] * 4)
        self.assertEqual((sampled[0]["key"], sampled[0]["version"]), (submit["key"], 2))

    async def play(self, sessions: int = 2, **rollout) -> dict:
        """The service's side of the sessions of a prompt; what it heard stands in the peer."""
        self.peer = await self.service.next()
        hello, _ = await self.peer.greet()
        return {"hello": hello, "submits": [await self.peer.rollout([5, 6], **rollout) for _ in range(sessions)]}

    async def test_a_failed_rollout_fails_its_group_in_training(self) -> None:
        failed = {"status": "failed", "reward": None, "error": {"code": "AGENT_FAILED", "message": "boom", "retryable": False}}
        _, status, tags, _ = await self.generate("train", lambda: self.play(**failed))
        self.assertEqual((status, tags), ("failure", {}))

    async def test_a_failed_rollout_scores_zero_in_validation(self) -> None:
        failed = {"status": "failed", "reward": None, "rows": [], "error": {"code": "AGENT_FAILED", "message": "boom", "retryable": False}}
        uid, status, tags, rows = await self.generate("val", lambda: self.play(sessions=1, **failed), validate=True)
        self.assertEqual((status, sorted(tags)), ("finished", [f"{uid}_0_0"]))
        self.assertEqual(rows["responses"][0].tolist(), [EOS])
        self.assertEqual((rows["response_mask"][0].tolist(), rows["rm_scores"][0].tolist()), ([0], [0.0]))
        self.assertGreater(len(rows["prompts"][0]), 2)
        self.assertEqual(list(rows["extra_fields"])[0]["reward_extra_info"], {"acc": 0.0, "failed": 1.0})
        self.assertEqual(tags[f"{uid}_0_0"]["min_global_steps"], 3)

    async def test_a_result_that_would_harm_fails_the_group_and_is_refused(self) -> None:
        wrong = {"rows": [{"agent": "main", "trajectory": "main", "promptLength": 2, "length": 99, "minVersion": 1, "maxVersion": 1, "turns": [], "reward": 1}]}
        _, status, tags, _ = await self.generate("train", lambda: self.play(**wrong))
        self.assertEqual((status, tags), ("failure", {}))
        self.assertEqual((await self.peer.hear("refused")).header["error"]["code"], "RESULT_INVALID")

    async def test_a_reserved_column_fails_before_anything_is_submitted(self) -> None:
        async def play() -> None:
            await (await self.service.next()).greet()

        _, status, _, _ = await self.generate("train", play, num_turns=np.array([7]))
        self.assertEqual(status, "failure")
        self.assertEqual(self.client.asked, [])

    async def test_a_native_reward_is_left_to_verl(self) -> None:
        task = asyncio.create_task(self.make_loop().run({"temperature": 1.0}, **self.row()))
        peer = await self.service.next()
        await peer.greet(reward="native")
        await peer.rollout([5, 6], reward=None)
        [output] = await asyncio.wait_for(task, 20)
        self.assertIsNone(output.reward_score)
        self.assertNotIn("rm_scores", output.as_dict())

    async def test_legacy_verl_gets_the_last_row_alone(self) -> None:
        row = self.row()
        del row["session_id"]
        task = asyncio.create_task(self.make_loop().run({"temperature": 1.0}, **row))
        peer = await self.service.next()
        await peer.greet()
        await peer.rollout([5, 6], turns=2, branches=2)
        output = await asyncio.wait_for(task, 20)
        self.assertEqual(output.response_ids, [3, 4, EOS, 1, 3, 4, EOS])

    async def test_errors_of_the_rollout_server_are_typed(self) -> None:
        cases = [
            (ray.exceptions.ActorUnavailableError("busy", None), "POLICY_UNAVAILABLE", True),
            (ray.exceptions.RayActorError(), "POLICY_WORKER_DIED", False),
            (ValueError("too long"), "POLICY_FAILED", False),
            (TokenOutput(token_ids=[1], log_probs=None, stop_reason="completed"), "POLICY_RESPONSE_INVALID", False),
        ]
        task = asyncio.create_task(self.make_loop().run({"temperature": 1.0}, **self.row()))
        peer = await self.service.next()
        await peer.greet()
        submit = await peer.hear("submit")
        for id, (answer, code, retryable) in enumerate(cases):
            self.client.answer = answer
            sampling = {"temperature": 1.0, "topP": 1.0, "topK": 0, "maxTokens": 4, "stop": []}
            await peer.say({"type": "generate", "id": id, "key": submit.header["key"], "agent": "a", "trajectory": "a", "turn": 0, "sampling": sampling}, {"promptIds": int32([1])})
            error = (await peer.hear("generate-failed")).header["error"]
            self.assertEqual((error["code"], error["retryable"]), (code, retryable))
        finishes = [
            ([], None, "aborted", "aborted"),
            ([1, 2, 3, 4], [-1.0] * 4, "completed", "length"),
            ([1, EOS], [-1.0] * 2, "completed", "stop"),
            ([1, 2], [-1.0] * 2, "completed", "length"),
        ]
        for id, (ids, logprobs, reason, finish) in enumerate(finishes, start=10):
            self.client.answer = TokenOutput(token_ids=ids, log_probs=logprobs, stop_reason=reason, extra_fields={"global_steps": None})
            await peer.say({"type": "generate", "id": id, "key": submit.header["key"], "agent": "a", "trajectory": "a", "turn": 0, "sampling": sampling}, {"promptIds": int32([1])})
            frame = await peer.hear("generated")
            self.assertEqual((frame.header["finish"], frame.header["maxVersion"], frame.arrays["ids"].tolist()), (finish, 2, ids))
        task.cancel()
        with self.assertRaises(asyncio.CancelledError):
            await task

    async def test_a_missing_address_names_the_variable(self) -> None:
        made = self.make_loop(channel=None)
        with self.assertRaisesRegex(ChannelError, "AWORLD_TRAIN_CHANNEL"):
            await made.run({}, **self.row())

    async def test_ray_names_an_incarnation_where_nobody_did(self) -> None:
        self.assertRegex(agent_loop._ray_incarnation(), r"^ray-[0-9a-f]+-[0-9a-f]{12}$")

    async def test_advantages_of_several_rows_come_from_the_primary_row(self) -> None:
        """What verl makes of two rows a rollout: the last row's reward enters the group, every row gets its advantage."""
        from verl.protocol import DataProto

        scores = [1.0, 0.0]
        mask = torch.ones(4, 2)
        data = DataProto.from_dict(
            tensors={"response_mask": mask, "token_level_rewards": torch.tensor([[0, s] for s in scores for _ in range(2)])},
            non_tensors={"uid": np.array(["u"] * 4, dtype=object)},
        )
        made = compute_advantage_for_multi_trajectories(data, ["u_0_0", "u_0_1", "u_1_0", "u_1_1"], core_algos.AdvantageEstimator.GRPO, norm_adv_by_std_in_grpo=True)
        values = made.batch["advantages"][:, 0]
        np.testing.assert_allclose(values, [0.7071, 0.7071, -0.7071, -0.7071], atol=1e-3)

    def row(self) -> dict:
        return {"raw_prompt": [{"role": "user", "content": "hi"}], "extra_info": {"split": "train"}, "uid": "u", "session_id": 0, "global_steps": 3}

    def make_loop(self, **entry):
        from verl.experimental.agent_loop.agent_loop import DictConfigWrap

        given = {"channel": self.service.url, "run": "r", "incarnation": "i", "run_path": self.run_path, **entry}
        made = config(self.folder.name)
        return agent_loop.AworldTrainAgentLoop(
            trainer_config=DictConfigWrap(made), server_manager=self.client, tokenizer=self.worker.tokenizer, processor=None,
            dataset_cls=None, data_config=DictConfigWrap(made.data), hf_model_type="qwen3", name="aworld", **given,
        )  # fmt: skip


if __name__ == "__main__":
    unittest.main()

import os
import signal
import tempfile
import time
import types
import unittest
from collections.abc import Callable
from unittest import mock

from aworld_train_bridge.verl.replay_buffer import WholeGroupReplayBuffer, WorkerWatch
from verl.trainer.ppo.v1 import replay_buffer


class Queue:
    """TransferQueue's lists of keys and tags, in this process."""

    def __init__(self) -> None:
        self.partitions: dict[str, dict[str, dict[str, object]]] = {"train": {}, "val": {}}
        self.groups = 0

    def kv_list(self) -> dict[str, dict[str, dict[str, object]]]:
        return {partition: dict(items) for partition, items in self.partitions.items()}

    def kv_clear(self, keys: list[str], partition_id: str) -> None:
        for key in keys:
            self.partitions[partition_id].pop(key, None)

    def add_group(self, status: str, rows: int, partition: str = "train") -> str:
        self.groups += 1
        uid = f"group{self.groups}"
        self.partitions[partition][uid] = {"is_prompt": True, "status": status, "global_steps": 1}
        for row in range(rows):
            self.partitions[partition][f"{uid}_{row}_0"] = {"status": "success", "seq_len": 3}
        return uid


class WholeGroups(unittest.TestCase):
    def setUp(self) -> None:
        self.queue = Queue()
        installed = mock.patch.object(replay_buffer, "tq", self.queue)
        installed.start()
        self.addCleanup(installed.stop)

    def buffer(self, mode: str, refill: Callable[[int], object], **options: object) -> replay_buffer.ReplayBuffer:
        return WholeGroupReplayBuffer(
            trainer_mode=mode,
            trainer_config={},
            max_off_policy_threshold=None,
            max_off_policy_strategy="drop",
            sampler_kwargs={"poll_interval": 0.001, **options},
            refill_fn=refill,
        )

    def test_a_group_with_one_failed_member_is_replaced_whole(self) -> None:
        for mode in ("sync", "colocate_async"):
            with self.subTest(mode=mode):
                good, broken = self.queue.add_group("finished", 8), self.queue.add_group("failure", 7)
                asked: list[int] = []

                def refill(count: int) -> None:
                    asked.append(count)
                    for _ in range(count):
                        self.queue.add_group("finished", 8)

                batch, metrics = self.buffer(mode, refill).sample(global_steps=1, partition_id="train", batch_size=2)
                uids = {key.split("_")[0] for key in batch.keys}
                self.assertEqual((len(batch.keys), asked), (16, [1]))
                self.assertIn(good, uids)
                self.assertNotIn(broken, uids)
                self.assertFalse([key for key in self.queue.partitions["train"] if key.startswith(broken)])
                self.assertEqual(metrics["training/rollout_failure/evicted_samples"], 1)

    def test_a_replacement_that_fails_is_replaced_too(self) -> None:
        self.queue.add_group("failure", 0)
        statuses = iter([("failure", 3), ("failure", 8), ("finished", 8)])
        buffer = self.buffer("sync", lambda count: [self.queue.add_group(*next(statuses)) for _ in range(count)])
        batch, _ = buffer.sample(global_steps=1, partition_id="train", batch_size=1)
        self.assertEqual({key.split("_")[0] for key in batch.keys}, {"group4"})

    def test_what_always_fails_ends_with_an_error_that_says_so(self) -> None:
        for mode in ("sync", "colocate_async"):
            with self.subTest(mode=mode):
                self.queue.add_group("failure", 1)
                asked: list[int] = []

                def refill(count: int) -> None:
                    asked.append(count)
                    self.queue.add_group("failure", 1)

                buffer = self.buffer(mode, refill, max_refills=5)
                with self.assertRaisesRegex(RuntimeError, r"\[GROUPS_FAILED\] 6 groups .* step 3.* limit is 5"):
                    buffer.sample(global_steps=3, partition_id="train", batch_size=2)
                self.assertEqual(sum(asked), 5)

    def test_the_limit_is_for_one_batch(self) -> None:
        buffer = self.buffer("sync", lambda count: [self.queue.add_group("finished", 2) for _ in range(count)], max_refills=2)
        for step in range(1, 6):
            for _ in range(2):
                self.queue.add_group("failure", 1)
            buffer.sample(global_steps=step, partition_id="train", batch_size=2)

    def test_validation_takes_every_group_and_replaces_none(self) -> None:
        self.queue.add_group("finished", 1, "val")
        self.queue.add_group("failure", 1, "val")
        batch, _ = self.buffer("sync", lambda _: self.fail("refilled")).sample(global_steps=1, partition_id="val", batch_size=2)
        self.assertEqual(sorted(batch.keys), ["group1_0_0", "group2_0_0"])


    def test_without_replacement_the_choice_is_verls_own(self) -> None:
        self.queue.add_group("finished", 2)
        self.queue.add_group("failure", 1)
        buffer = self.buffer("sync", lambda _: self.fail("refilled"), replace_failed=False)
        batch, _ = buffer.sample(global_steps=1, partition_id="train", batch_size=2)
        self.assertEqual(sorted(batch.keys), ["group1_0_0", "group1_1_0", "group2_0_0"])


class Workers(unittest.TestCase):
    """Real actors of Ray."""

    def test_a_worker_that_died_ends_the_wait_for_its_groups(self) -> None:
        import ray

        with tempfile.TemporaryDirectory(dir="/tmp") as folder:
            ray.init(num_cpus=2, include_dashboard=False, _temp_dir=folder, log_to_driver=False)
            try:

                @ray.remote(num_cpus=0)
                class Worker:
                    async def pid(self) -> int:
                        return os.getpid()

                class Trainer:
                    agent_loop_manager = types.SimpleNamespace(agent_loop_workers=[Worker.remote(), Worker.remote()])

                trainer = Trainer()
                pids = ray.get([worker.pid.remote() for worker in trainer.agent_loop_manager.agent_loop_workers])
                watch = WorkerWatch(trainer)

                def check() -> None:
                    watch._next = 0.0
                    watch.check()
                    time.sleep(0.05)

                for _ in range(5):
                    check()
                os.kill(pids[1], signal.SIGKILL)
                with self.assertRaises(ray.exceptions.ActorDiedError):
                    for _ in range(400):
                        check()
            finally:
                ray.shutdown()


class Settings(unittest.TestCase):
    def trainer(self, **sampler: object) -> object:
        from omegaconf import OmegaConf

        class Trainer:
            config = OmegaConf.create(
                {
                    "trainer": {"v1": {"sampler": sampler}},
                    "data": {"train_batch_size": 4},
                    "algorithm": {"filter_groups": {"enable": True, "metric": "reward", "max_inflight_gen_batches": 3}},
                }
            )

            def _resolve_filter_groups_metric(self) -> str:
                return "reward"

            def add(self, count: int) -> None: ...

        return Trainer()

    def make(self, trainer: object, mode: str, **options: object) -> replay_buffer.ReplayBuffer:
        return WholeGroupReplayBuffer(
            trainer_mode=mode, trainer_config={}, max_off_policy_threshold=None, max_off_policy_strategy="drop",
            sampler_kwargs=options, refill_fn=trainer.add,
        )  # fmt: skip

    def test_takes_over_what_verl_gives_to_its_own_class_only(self) -> None:
        buffer = self.make(self.trainer(sync_refill_failed_groups=True), "sync")
        self.assertEqual(
            (buffer.filter_groups_metric, buffer.train_batch_size, buffer.gen_batch_size, buffer.max_inflight_gen_batches, buffer.poll_interval),
            ("reward", 4, 1, 3, 2.0),
        )
        self.assertEqual(self.make(self.trainer(), "colocate_async").filter_groups_metric, "reward")

    def test_leaves_batches_whole_where_no_group_is_replaced(self) -> None:
        trainer = self.trainer()
        trainer.config.algorithm.filter_groups.enable = False
        trainer._resolve_filter_groups_metric = lambda: None
        buffer = self.make(trainer, "sync", replace_failed=False)
        self.assertEqual((buffer.gen_batch_size, buffer.sync_refill_failed_groups, buffer.filter_groups_metric), (4, False, None))

    def test_refuses_a_dataloader_that_gives_whole_batches(self) -> None:
        with self.assertRaisesRegex(ValueError, "sync_refill_failed_groups=True"):
            self.make(self.trainer(), "sync")


if __name__ == "__main__":
    unittest.main()

import unittest

from aworld_train_bridge.areal import configuration


def keys_refused(actor: dict[str, object]) -> list[str | None]:
    """For batches of two tasks with four rollouts each."""
    written = {"train_dataset": {"batch_size": 2}, "gconfig": {"n_samples": 4}, "actor": {"attn_impl": "flash_attention_2", **actor}}
    problems, _, _ = configuration.check(written, on_cpu=False)
    return [problem.key for problem in problems]


class Dividing(unittest.TestCase):
    def test_a_batch_has_a_row_for_each_update(self) -> None:
        self.assertEqual(keys_refused({"ppo_n_minibatches": 8}), [])
        self.assertEqual(keys_refused({"ppo_n_minibatches": 9}), ["actor.ppo_n_minibatches"])

    def test_an_update_has_a_row_for_each_micro_batch(self) -> None:
        self.assertEqual(keys_refused({"ppo_n_minibatches": 2, "mb_spec": {"n_mbs": 4}}), [])
        self.assertEqual(keys_refused({"ppo_n_minibatches": 2, "mb_spec": {"n_mbs": 5}}), ["actor.mb_spec.n_mbs"])


if __name__ == "__main__":
    unittest.main()

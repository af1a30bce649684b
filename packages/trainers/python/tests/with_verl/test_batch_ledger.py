import unittest
from unittest import mock

from aworld_train_bridge.verl.batch_ledger import count_rows


class Rows(unittest.TestCase):
    def test_rows_of_one_rollout_are_counted_together_and_padding_apart(self) -> None:
        keys = ["u1_0_0", "u1_0_1", "u1_1_0", "pad_0_0"]
        tags = [{"global_steps": 4}, {"global_steps": 4}, {"global_steps": 4}, {"global_steps": 4, "is_padding": True}]
        extra = [{"aworld_train_key": "a"}, {"aworld_train_key": "a"}, {"aworld_train_key": "b"}, {"aworld_train_key": "a"}]
        counted, padded = count_rows(keys, tags, [5, 7, 2, 0], extra)
        self.assertEqual(
            counted, [{"key": "a", "rows": 2, "maskTokens": 12}, {"key": "b", "rows": 1, "maskTokens": 2}]
        )
        self.assertEqual(padded, 1)

    def test_a_row_without_its_key_gets_the_one_that_was_submitted(self) -> None:
        with mock.patch.dict("os.environ", {"AWORLD_TRAIN_RUN": "my run/1", "AWORLD_TRAIN_INCARNATION": "i-1"}):
            counted, _ = count_rows(["u-1_3_0"], [{"global_steps": 4}], [5], [None])
        self.assertEqual(counted[0]["key"], "my%20run%2F1/i-1/train/4/u-1/3")


if __name__ == "__main__":
    unittest.main()

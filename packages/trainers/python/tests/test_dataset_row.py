import datetime
import math
import unittest

from aworld_train_bridge.shared.keys import to_key
from aworld_train_bridge.errors import ChannelError
from aworld_train_bridge.plain import to_plain
from aworld_train_bridge.verl.dataset_row import partition_of, reserved_columns, to_row, to_sampling

ROW = {
    "raw_prompt": [{"role": "user", "content": "hi"}],
    "data_source": "toy",
    "reward_model": {"ground_truth": "42"},
    "extra_info": {"split": "train", "index": 3},
    "index": 3,
    "level": "easy",
    "uid": "u",
    "session_id": 0,
    "global_steps": 1,
    "dummy_tensor": object(),
    "tools_kwargs": {},
    "interaction_kwargs": {},
}


class DatasetRowTest(unittest.TestCase):
    def test_a_row_travels_without_what_verl_added(self) -> None:
        expected = {
            "prompt": [{"role": "user", "content": "hi"}],
            "dataSource": "toy",
            "rewardModel": {"ground_truth": "42"},
            "extraInfo": {"split": "train", "index": 3},
            "index": 3,
            "columns": {"level": "easy"},
        }
        self.assertEqual(to_row(ROW), expected)

    def test_reserved_columns_are_refused_by_name(self) -> None:
        for column in reserved_columns()["overwritesOutput"]:
            with self.subTest(column=column), self.assertRaises(ChannelError) as raised:
                to_row({**ROW, column: 1})
            self.assertIn(f'"{column}"', raised.exception.message)

    def test_a_row_without_messages_is_refused(self) -> None:
        with self.assertRaises(ChannelError):
            to_row({**ROW, "raw_prompt": None})

    def test_the_split_says_the_partition(self) -> None:
        self.assertEqual([partition_of({"extra_info": {"split": split}}) for split in ("train", "val", "test", "validation")], ["train", "val", "val", "val"])
        self.assertEqual([partition_of({}), partition_of({"extra_info": None})], ["train", "train"])

    def test_keys_are_encoded_as_encodeURIComponent_does(self) -> None:
        self.assertEqual(to_key("r/1", "ä", "train", 2, "u-_.!~*'()%", 0), "r%2F1/%C3%A4/train/2/u-_.!~*'()%25/0")

    def test_sampling_in_the_words_of_the_channel(self) -> None:
        given = {"temperature": 0, "top_p": 1.0, "top_k": -1, "repetition_penalty": 1.0, "logprobs": True}
        self.assertEqual(to_sampling(given), {"temperature": 0.0, "topP": 1.0, "topK": -1, "repetitionPenalty": 1.0})

    def test_dates_become_text_and_missing_numbers_null(self) -> None:
        self.assertEqual(to_plain({"at": datetime.date(2026, 1, 2), "when": datetime.datetime(2026, 1, 2, 3)}), {"at": "2026-01-02", "when": "2026-01-02T03:00:00"})
        self.assertEqual(to_plain([math.nan, 1.5, None, True]), [None, 1.5, None, True])

    def test_what_has_no_json_is_refused_by_name(self) -> None:
        for value in (b"x", bytearray(b"x"), math.inf, 2**53, object(), {1, 2}):
            with self.subTest(value=value), self.assertRaises(ChannelError) as raised:
                to_plain({"a": [{"b": value}]}, "extra_info")
            self.assertIn("extra_info.a[0].b", raised.exception.message)
            self.assertEqual(raised.exception.code, "DATASET_INVALID")


if __name__ == "__main__":
    unittest.main()

import unittest
from typing import Any

from aworld_train_bridge.errors import ChannelError
from aworld_train_bridge.frames import Frame, float32, int32, uint8
from aworld_train_bridge.verl.rows import RowContext, failed_rows, to_rows

ROW = {"agent": "main", "trajectory": "main", "promptLength": 2, "length": 5, "minVersion": 3, "maxVersion": 4, "turns": [0], "reward": 0.5}
IDS, MASK, LOGPROBS = [1, 2, 3, 4, 5], [0, 0, 1, 0, 1], [0.0, 0.0, -0.5, 0.0, -0.25]


def context(evaluation: bool = False, native: bool = False) -> RowContext:
    return RowContext("k", evaluation, vocabulary_size=10, eos_token_id=9, fallback_version=6, prompt_ids=lambda: [7, 8], native_reward=native)


def result(rows: int = 1, rewards: list[Any] | None = None, ids: list[int] = IDS, mask: list[int] = MASK, logprobs: list[float] = LOGPROBS, row: dict | None = None, **more: Any) -> Frame:
    header = {
        "type": "result", "key": "k", "status": "done", "stopReason": "finished", "reward": 0.5, "scores": {"exact": 1}, "error": None,
        "turns": 3, "generateMs": 1500, "toolMs": 250, "rows": [{**ROW, **(row or {}), **({} if rewards is None else {"reward": rewards[index]})} for index in range(rows)], **more,
    }  # fmt: skip
    arrays = {f"{name}.{index}": values for index in range(rows) for name, values in (("ids", int32(ids)), ("mask", uint8(mask)), ("logprobs", float32(logprobs)))}
    return Frame(header, arrays)


FAILED: dict[str, Any] = {"status": "failed", "stopReason": "error", "reward": None, "scores": {}, "rewards": [None], "error": {"code": "AGENT_FAILED", "message": "boom", "retryable": False}}


class RowsTest(unittest.TestCase):
    def refused(self, frame: Frame, evaluation: bool = False) -> ChannelError:
        with self.assertRaises(ChannelError) as raised:
            to_rows(frame, context(evaluation))
        return raised.exception

    def test_every_field_is_set(self) -> None:
        [row] = to_rows(result(), context())
        self.assertEqual(
            row,
            {
                "prompt_ids": [1, 2],
                "response_ids": [3, 4, 5],
                "response_mask": [1, 0, 1],
                "response_logprobs": [-0.5, 0.0, -0.25],
                "reward_score": 0.5,
                "num_turns": 6,
                "metrics": {"generate_sequences": 1.5, "tool_calls": 0.25, "compute_score": 0.0, "num_preempted": -1},
                "extra_fields": {
                    "min_global_steps": 3,
                    "max_global_steps": 4,
                    "agent": "main","trajectory": "main",
                    "aworld_train_key": "k",
                    "stop_reason": "finished",
                    "turn_scores": [],
                    "tool_rewards": [],
                    "reward_extra_info": {"exact": 1.0, "acc": 0.5, "failed": 0.0},
                },
            },
        )

    def test_several_rows_have_the_same_fields_and_share_nothing_writable(self) -> None:
        first, second = to_rows(result(rows=2), context())
        self.assertEqual(first.keys(), second.keys())
        self.assertEqual(first["extra_fields"].keys(), second["extra_fields"].keys())
        self.assertIsNot(first["extra_fields"]["reward_extra_info"], second["extra_fields"]["reward_extra_info"])

    def test_each_row_has_its_own_reward(self) -> None:
        rows = to_rows(result(rows=2, rewards=[0.25, -1]), context())
        self.assertEqual([row["reward_score"] for row in rows], [0.25, -1.0])
        self.assertEqual([row["extra_fields"]["reward_extra_info"]["acc"] for row in rows], [0.5, 0.5])

    def test_an_own_acc_is_kept(self) -> None:
        [row] = to_rows(result(scores={"acc": 1.0}), context())
        self.assertEqual(row["extra_fields"]["reward_extra_info"], {"acc": 1.0, "failed": 0.0})

    def test_a_native_reward_is_left_to_verl_in_every_row(self) -> None:
        rows = to_rows(result(rows=2, rewards=[None, None], reward=None, scores={}), context(native=True))
        self.assertEqual([row["reward_score"] for row in rows], [None, None])
        self.assertEqual([row["extra_fields"]["reward_extra_info"] for row in rows], [{}, {}])

    def test_a_failed_rollout_raises_in_training_with_or_without_rows(self) -> None:
        for rows in (0, 1):
            error = self.refused(result(rows=rows, **FAILED))
            self.assertEqual((error.code, error.message), ("AGENT_FAILED", "boom"))

    def test_a_failed_rollout_scores_zero_in_an_evaluation(self) -> None:
        [row] = to_rows(result(**FAILED), context(evaluation=True))
        self.assertEqual((row["response_ids"], row["reward_score"]), ([3, 4, 5], 0.0))
        self.assertEqual(row["extra_fields"]["reward_extra_info"], {"acc": 0.0, "failed": 1.0})
        self.assertEqual(row["extra_fields"]["failure"], "AGENT_FAILED")

    def test_a_failed_rollout_without_rows_is_one_masked_token_in_an_evaluation(self) -> None:
        [row] = to_rows(result(rows=0, **FAILED), context(evaluation=True))
        self.assertEqual((row["prompt_ids"], row["response_ids"], row["response_mask"], row["response_logprobs"]), ([7, 8], [9], [0], [0.0]))
        self.assertEqual((row["reward_score"], row["extra_fields"]["min_global_steps"], row["extra_fields"]["max_global_steps"]), (0.0, 6, 6))

    def test_a_rollout_beyond_its_deadline_scores_zero_in_an_evaluation(self) -> None:
        [row] = failed_rows("k", ChannelError("ROLLOUT_DEADLINE", "late", True), context(evaluation=True))
        self.assertEqual((row["reward_score"], row["extra_fields"]["failure"]), (0.0, "ROLLOUT_DEADLINE"))

    def test_a_result_that_would_harm_is_refused_naming_the_row(self) -> None:
        cases = {
            "no row": result(rows=0),
            "lengths": result(logprobs=LOGPROBS[:-1]),
            "length of the header": result(row={"length": 6}),
            "mask": result(mask=MASK[:-1]),
            "NaN": result(logprobs=[0.0, 0.0, float("nan"), 0.0, -1.0]),
            "infinite": result(logprobs=[0.0, 0.0, float("-inf"), 0.0, -1.0]),
            "vocabulary": result(ids=[1, 2, 3, 4, 10]),
            "negative id": result(ids=[1, 2, -3, 4, 5]),
            "mask in the prompt": result(mask=[0, 1, 1, 0, 1]),
            "mask of two": result(mask=[0, 0, 2, 0, 1]),
            "nothing sampled": result(mask=[0] * 5),
            "no prompt": result(row={"promptLength": 0}),
            "no response": result(row={"promptLength": 5}),
            "reward": result(reward=float("nan")),
            "reward as text": result(reward="1"),
            "no reward": result(reward=None),
            "reward of the row": result(rewards=[float("nan")]),
            "row without a reward": result(rewards=[None]),
            "arrays": Frame(result().header, {}),
        }
        for name, frame in cases.items():
            for evaluation in (False, True):
                with self.subTest(name=name, evaluation=evaluation):
                    error = self.refused(frame, evaluation)
                    self.assertEqual(error.code, "RESULT_INVALID")
                    self.assertIn("The result of k", error.message)
                    if name in ("lengths", "NaN", "vocabulary"):
                        self.assertIn("row 0 (main)", error.message)


if __name__ == "__main__":
    unittest.main()

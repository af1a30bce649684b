import math
import unittest

import torch
from areal.api.cli_args import NormConfig
from areal.utils.data import Normalization
from aworld_train_bridge.areal.workflow import FailedLeftOut, to_trajectory
from aworld_train_bridge.shared.rows import Row

GROUPS = NormConfig(mean_level="group", std_level="group", group_size=4)


def alone(rewards: list[float]) -> list[float]:
    """What AReaL makes of a group by itself."""
    norm = NormConfig(mean_level="group", std_level="group", group_size=len(rewards))
    return Normalization(norm)(torch.tensor(rewards)).tolist()


class LeavingOut(unittest.TestCase):
    def test_a_failed_rollout_has_no_part_in_the_mean_of_its_group(self) -> None:
        rewards = torch.tensor([0.0, math.nan, 1.0, 0.5, 1.0, 0.0, 0.0, 0.0])
        result = FailedLeftOut(GROUPS)(rewards).tolist()
        first = alone([0.0, 1.0, 0.5])
        self.assertEqual(result, [first[0], 0.0, *first[1:], *alone([1.0, 0.0, 0.0, 0.0])])

    def test_groups_that_lost_all_or_all_but_one_have_no_advantage(self) -> None:
        rewards = torch.tensor([math.nan] * 4 + [math.nan, 1.0, math.nan, math.nan])
        self.assertEqual(FailedLeftOut(GROUPS)(rewards).tolist(), [0.0] * 8)

    def test_with_the_mean_of_the_others_as_baseline_a_row_that_is_left_alone_has_no_advantage(self) -> None:
        others = NormConfig(mean_level="group", mean_leave1out=True, std_level=None, group_size=4)
        rewards = torch.tensor([math.nan, 1.0, math.nan, math.nan, 1.0, math.nan, 0.0, 0.5])
        self.assertEqual(FailedLeftOut(others)(rewards).tolist(), [0.0] * 4 + [0.75, 0.0, -0.75, 0.0])

    def test_a_batch_is_scaled_as_one_where_groups_have_the_mean(self) -> None:
        mixed = NormConfig(mean_level="group", std_level="batch", group_size=2, eps=0.0)
        rewards = torch.tensor([0.0, 1.0, 2.0, 4.0, math.nan, 3.0])
        deviation = math.sqrt((0.25 + 0.25 + 1 + 1) / 4)  # of the five that were scored, one of which is alone
        expected = [value / deviation for value in (-0.5, 0.5, -1.0, 1.0, 0.0, 0.0)]
        for found, value in zip(FailedLeftOut(mixed)(rewards).tolist(), expected, strict=True):
            self.assertAlmostEqual(found, value, places=5)

    def test_batches_and_no_normalization_at_all(self) -> None:
        rewards = torch.tensor([math.nan, 1.0, 0.0])
        self.assertEqual(FailedLeftOut(None)(rewards).tolist(), [0.0, 1.0, 0.0])
        batch = NormConfig(mean_level="batch", std_level="batch")
        self.assertEqual(FailedLeftOut(batch)(rewards).tolist(), [0.0, *Normalization(batch)(rewards[1:]).tolist()])

    def test_whole_groups_are_areals_own(self) -> None:
        rewards = torch.tensor([0.0, 0.2, 1.0, 0.5])
        self.assertEqual(FailedLeftOut(GROUPS)(rewards).tolist(), Normalization(GROUPS)(rewards).tolist())


class Trajectories(unittest.TestCase):
    def test_a_row_is_a_batch_of_one(self) -> None:
        row = Row("agent", [5, 6], [7, 8, 9], [1, 0, 1], [-0.5, 0.0, -0.25], 0.75, 3, 4, "agent")
        found = {name: value.tolist() for name, value in to_trajectory(row).items()}
        self.assertEqual(
            found,
            {
                "input_ids": [[5, 6, 7, 8, 9]],
                "loss_mask": [[0, 0, 1, 0, 1]],
                "logprobs": [[0.0, 0.0, -0.5, 0.0, -0.25]],
                "versions": [[-1, -1, 3, 3, 3]],
                "attention_mask": [[True] * 5],
                "rewards": [0.75],
            },
        )


if __name__ == "__main__":
    unittest.main()

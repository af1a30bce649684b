import tempfile
import unittest
from dataclasses import replace
from pathlib import Path

import torch
from aworld_train_bridge.shared.batch_accounts import BatchAccounts
from aworld_train_bridge.shared.ledger import Ledger, read_ledger
from aworld_train_bridge.shared.logprobs import largest_difference
from aworld_train_bridge.shared.rows import Row
from aworld_train_bridge.errors import ChannelError

FIRST = Row("main", [1, 2], [3, 4, 5], [1, 0, 1], [-0.5, 0.0, -0.25], 1.0, 4, 4)
SECOND = Row("main", [1, 2], [6, 7], [1, 1], [-1.0, -2.0], 0.0, 4, 4)
EMPTY = Row("", [0], [0], [0], [0.0], None, None, None)


def batch(*rows: Row, logprobs: list[list[float]] | None = None) -> tuple:
    recomputed = [torch.tensor(each) for each in logprobs or [row.response_logprobs for row in rows]]
    return [row.prompt_ids for row in rows], [row.response_ids for row in rows], [torch.tensor(row.response_mask) for row in rows], recomputed


class BatchAccountsTest(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = Path(folder.name)
        self.ledger = Ledger(self.path, "i")
        self.addCleanup(self.ledger.close)
        self.accounts = BatchAccounts(self.ledger, tolerance=1e-4)
        self.accounts.hand_over([("a", FIRST), ("b", SECOND), (None, EMPTY)])

    def lines(self) -> list[dict]:
        return list(read_ledger(self.path / "ledger" / "i", "trained"))

    def refused(self, *given) -> str:
        with self.assertRaises(ChannelError) as raised:
            self.accounts.compare(*given)
        return raised.exception.code

    def test_rows_in_any_order_and_in_parts_are_counted_once_a_step(self) -> None:
        self.accounts.compare(*batch(EMPTY, SECOND), 4)
        self.accounts.compare(*batch(FIRST, logprobs=[[-0.5 + 5e-5, 9.0, -0.25]]), 4)
        self.accounts.compare(*batch(FIRST, SECOND, logprobs=[[-3.0] * 3, [-3.0] * 2]), 4)  # a second pass, by other weights
        self.accounts.close_step(5)
        self.accounts.close_step(6)
        [line] = self.lines()
        self.assertAlmostEqual(line.pop("maxLogprobDifference"), 5e-5, places=7)
        keys = [{"key": "b", "rows": 1, "maskTokens": 2}, {"key": "a", "rows": 1, "maskTokens": 2}]
        self.assertEqual(line, {"step": 5, "keys": keys, "rowsPadded": 1})

    def test_two_rollouts_with_the_same_tokens_are_two(self) -> None:
        self.accounts.hand_over([("a", SECOND), ("b", SECOND)])
        self.accounts.compare(*batch(SECOND, SECOND), 4)
        self.accounts.close_step(5)
        self.assertEqual({each["key"] for each in self.lines()[0]["keys"]}, {"a", "b"})

    def test_a_batch_that_carries_other_logprobs_than_the_rows_ends_the_run(self) -> None:
        *arrays, logprobs = batch(FIRST)
        self.accounts.compare(*arrays, logprobs, 4, [torch.tensor([-0.5, 7.0, -0.25])])  # where the mask is 0 nothing is carried
        self.assertEqual(self.refused(*arrays, logprobs, 4, [torch.tensor([-0.25, 0.0, -0.5])]), "BATCH_MISMATCH")

    def test_rollouts_with_the_same_tokens_may_have_been_sampled_with_other_logprobs(self) -> None:
        # In another batch of the sampler the last bits differ, and a trainer shuffles its rows.
        other = replace(SECOND, response_logprobs=[-1.0, -2.0000002384185791])
        self.accounts.hand_over([("a", SECOND), ("b", other)])
        for _ in range(2):
            self.accounts.compare(*batch(other, SECOND), 4, [torch.tensor(each.response_logprobs) for each in (other, SECOND)])
        *arrays, logprobs = batch(other)
        self.assertEqual(self.refused(*arrays, logprobs, 4, [torch.tensor([-1.0, -2.5])]), "BATCH_MISMATCH")

    def test_another_id_another_mask_or_another_row_ends_the_run(self) -> None:
        prompts, responses, masks, logprobs = batch(FIRST)
        self.assertEqual(self.refused(prompts, [[3, 4, 6]], masks, logprobs, 4), "BATCH_MISMATCH")
        self.assertEqual(self.refused([[1, 1]], responses, masks, logprobs, 4), "BATCH_MISMATCH")
        self.assertEqual(self.refused(prompts, responses, [torch.tensor([1, 1, 1])], logprobs, 4), "BATCH_MISMATCH")
        self.assertEqual(self.refused(prompts, responses, [torch.tensor([1, 0, 0])], logprobs, 4), "BATCH_MISMATCH")

    def test_logprobs_beyond_the_tolerance_end_the_run_but_only_of_the_weights_that_sampled(self) -> None:
        given = batch(FIRST, logprobs=[[-0.5, 0.0, -0.5]])
        self.accounts.compare(*given, 5)
        self.accounts.hand_over([("a", FIRST)])
        self.assertEqual(self.refused(*given, 4), "POLICY_LOGPROB_MISMATCH")

    def test_a_shifted_token_is_beyond_the_tolerance(self) -> None:
        shifted = Row("main", [1, 2], [4, 3, 5], [1, 1, 1], [-0.5, -1.5, -0.25], 1.0, 4, 4)
        self.accounts.hand_over([("a", shifted)])
        self.assertEqual(self.refused(*batch(shifted, logprobs=[[-1.5, -0.5, -0.25]]), 4), "POLICY_LOGPROB_MISMATCH")

    def test_without_a_tolerance_it_is_measured_only(self) -> None:
        accounts = BatchAccounts(self.ledger, tolerance=None)
        accounts.hand_over([("a", FIRST)])
        accounts.compare(*batch(FIRST, logprobs=[[-1.5, 0.0, -0.25]]), 4)
        accounts.close_step(1)
        self.assertEqual(self.lines()[0]["maxLogprobDifference"], 1.0)


class Differences(unittest.TestCase):
    def test_the_largest_one_over_sampled_tokens_counts(self) -> None:
        masks = [torch.tensor([1, 0, 1]), torch.tensor([0]), torch.tensor([1])]
        rollout = [torch.tensor([-1.0, 0.0, -2.0]), torch.tensor([0.0]), torch.tensor([-3.0])]
        actor = [torch.tensor([-1.5, -9.0, -2.0]), torch.tensor([-9.0]), torch.tensor([-2.25])]
        self.assertEqual(largest_difference(masks, rollout, actor), 0.75)
        self.assertIsNone(largest_difference(masks[1:2], rollout[1:2], actor[1:2]))

    def test_a_logprob_that_is_not_finite_ends_the_run(self) -> None:
        for value in (float("nan"), float("-inf")):
            with self.assertRaisesRegex(RuntimeError, "LOGPROBS_NOT_FINITE"):
                largest_difference([torch.tensor([1])], [torch.tensor([-1.0])], [torch.tensor([value])])


if __name__ == "__main__":
    unittest.main()

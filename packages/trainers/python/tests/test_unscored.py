"""A rollout from which the reward abstained: begun once, left out of means, and no failure."""

import unittest
from types import SimpleNamespace

from aworld_train_bridge.shared.rollouts import Outcome
from aworld_train_bridge.shared.rows import Row
from aworld_train_bridge.shared.unscored import evaluated
from aworld_train_bridge.errors import ChannelError
from aworld_train_bridge.hugging_face.rollout_source import REPLACEMENTS, RolloutSource

ABSTAINED = ChannelError("ROLLOUT_UNSCORED", "The reward abstained.")
FAILED = ChannelError("AGENT_FAILED", "It threw.")
ROW = Row("agent", [1], [2], [1], [-0.5], 1.0, 0, 0, "agent")


class Unscored(unittest.TestCase):
    def test_is_in_no_mean(self) -> None:
        outcomes = [Outcome("a", [ROW], 1.0), Outcome("b", [], error=FAILED), Outcome("c", [], error=ABSTAINED)]
        self.assertEqual(evaluated(outcomes), {"eval_reward": 0.5, "eval_failed": 1.0, "eval_unscored": 1.0})

    def test_is_not_begun_again(self) -> None:
        begun: list[str] = []

        def run(submissions):
            begun.extend(each.uid for each in submissions)
            errors = {"abstains": ABSTAINED, "fails": FAILED}
            return [Outcome(each.uid, [] if each.uid in errors else [ROW], 1.0, error=errors.get(each.uid)) for each in submissions]

        handed: list[object] = []
        accounts = SimpleNamespace(hand_over=handed.extend)
        tasks = {"abstains": {}, "fails": {}, "works": {}}
        source = RolloutSource(SimpleNamespace(run=run), accounts, tasks, None, sampling={}, filler=0)
        rows = source.rows(list(tasks), 1)
        self.assertEqual([begun.count(id) for id in tasks], [1, 1 + REPLACEMENTS, 1])
        self.assertEqual([row.reward for row in rows], [None, None, 1.0])
        self.assertEqual(source.take_replaced(), REPLACEMENTS)


if __name__ == "__main__":
    unittest.main()

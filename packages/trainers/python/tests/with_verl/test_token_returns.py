"""Advantages of verl's estimators for rows of several turns: what the last turn is rewarded for reaches those before a tool's answer."""

import unittest

import numpy
import torch
from verl.trainer.config import AlgoConfig
from verl.trainer.ppo.core_algos import compute_gae_advantage_return, get_adv_estimator_fn

# Two turns with the answer of a tool between them; a row of one turn; and a row of two answers, which is padded.
MASK = torch.tensor([[1, 1, 0, 0, 1, 1], [1, 1, 1, 1, 1, 1], [1, 0, 1, 0, 1, 0], [1, 1, 0, 1, 1, 0]])
# verl puts the reward on the last token of a response.
LAST = [5, 5, 4, 4]


def rewards_at_the_end(rewards: list[float]) -> torch.Tensor:
    tokens = torch.zeros(MASK.shape)
    tokens[range(len(rewards)), LAST] = torch.tensor(rewards)
    return tokens


class TokenReturnsTest(unittest.TestCase):
    def test_a_return_goes_over_the_tokens_of_a_tool(self) -> None:
        rewards = [1.0, 0.25, 0.5, 0.0]
        expected = torch.tensor(rewards).unsqueeze(1) * MASK
        tokens, options = rewards_at_the_end(rewards), {"response_mask": MASK, "config": AlgoConfig(gamma=1.0)}
        _, returns = get_adv_estimator_fn("reinforce_plus_plus")(token_level_rewards=tokens, **options)
        torch.testing.assert_close(returns, expected)
        _, returns = compute_gae_advantage_return(tokens, torch.zeros(MASK.shape), MASK, 1.0, 1.0)
        torch.testing.assert_close(returns * MASK, expected)
        _, returns = get_adv_estimator_fn("remax")(token_level_rewards=tokens, reward_baselines=torch.zeros(4), **options)
        torch.testing.assert_close(returns * MASK, expected)

    def test_leave_one_out_of_one_loser_or_one_winner_is_that_of_the_formula(self) -> None:
        for rewards in ([1.0, 1.0, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0]):
            others = [(sum(rewards) - each) / 3 for each in rewards]
            expected = (torch.tensor(rewards) - torch.tensor(others)).unsqueeze(1) * MASK
            for name in ("rloo", "rloo_vectorized"):
                with self.subTest(name, rewards=rewards):
                    advantages, _ = get_adv_estimator_fn(name)(
                        token_level_rewards=rewards_at_the_end(rewards), response_mask=MASK, index=numpy.array(["task"] * 4)
                    )
                    torch.testing.assert_close(advantages, expected)


if __name__ == "__main__":
    unittest.main()

"""Seeds of evaluations: the same in every run, others in every place, and none in training."""

import unittest

from aworld_train_bridge.shared.keys import evaluation_seed, to_key


class EvaluationSeeds(unittest.TestCase):
    def test_depend_on_the_place_of_a_call_and_not_on_its_run(self) -> None:
        def seed(run: str = "run", incarnation: str = "i", sample: int = 0, turn: int = 0, number: int = 7) -> int | None:
            return evaluation_seed(number, to_key(run, incarnation, "val", 0, "task/1", sample), "main", turn)

        self.assertEqual(seed(), seed(run="other", incarnation="j"))
        self.assertEqual(len({seed(), seed(sample=1), seed(turn=1), seed(number=8)}), 4)

    def test_are_none_in_training(self) -> None:
        self.assertIsNone(evaluation_seed(7, to_key("run", "i", "train", 1, "task", 0), "main", 0))


if __name__ == "__main__":
    unittest.main()

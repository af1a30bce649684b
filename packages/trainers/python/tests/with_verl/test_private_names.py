"""The names of verl that the bridge relies on, in the verl that is installed."""

import unittest
from unittest.mock import patch

from aworld_train_bridge.verl import private_names


class PrivateNamesTest(unittest.TestCase):
    def test_are_all_there_with_their_parameters(self) -> None:
        self.assertEqual(private_names.changed(), [])

    def test_one_that_is_gone_or_takes_others_is_named(self) -> None:
        names = {"verl.utils.config:gone": None, "verl.utils.config:validate_config": ("config", "colour")}
        with patch.dict(private_names.NAMES, names, clear=True):
            gone, other = private_names.changed()
        self.assertRegex(gone, "verl has no verl.utils.config:gone")
        self.assertRegex(other, "takes config, use_reference_policy, use_critic, and the bridge gives it config, colour")


if __name__ == "__main__":
    unittest.main()

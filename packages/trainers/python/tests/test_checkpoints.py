import tempfile
import unittest
from pathlib import Path

from aworld_train_bridge.hugging_face.checkpoints import last_checkpoint


class LastCheckpoint(unittest.TestCase):
    def test_is_the_newest_one_that_was_written_to_its_end(self) -> None:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            self.assertIsNone(last_checkpoint(folder))
            for step, state in [("2", "{}"), ("10", "{}"), ("12", None), ("14", '{"epoch": 0.'), ("16", ""), ("draft", "{}")]:
                (folder / f"checkpoint-{step}").mkdir()
                if state is not None:
                    (folder / f"checkpoint-{step}" / "trainer_state.json").write_text(state, encoding="utf8")
            self.assertEqual(last_checkpoint(folder), str(folder / "checkpoint-10"))


if __name__ == "__main__":
    unittest.main()

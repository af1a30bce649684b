"""Settings, ledger, version: what a process of verl reads and writes by itself."""

import json
import multiprocessing
import os
import signal
import tempfile
import unittest
import warnings
from pathlib import Path

from aworld_train_bridge.shared.ledger import Ledger, ledger_of_environment, read_ledger
from aworld_train_bridge.shared.settings import read_settings
from aworld_train_bridge.errors import ChannelError
from aworld_train_bridge.verl.version import check_version

ENVIRONMENT = {"AWORLD_TRAIN_CHANNEL": "ws://127.0.0.1:1/v1/channel", "AWORLD_TRAIN_INCARNATION": "i", "AWORLD_TRAIN_CHANNEL_TOKEN": "t"}


class SettingsTest(unittest.TestCase):
    def test_environment_wins_over_the_entry(self) -> None:
        settings = read_settings({"channel": "ws://other", "run": "mine", "incarnation": "old", "deadline_s": 5}, ENVIRONMENT)
        self.assertEqual((settings.url, settings.token, settings.run, settings.incarnation), ("ws://127.0.0.1:1/v1/channel", "t", "mine", "i"))
        self.assertEqual((settings.run_path, settings.deadline_seconds), (None, 5.0))

    def test_a_token_may_stand_in_a_file(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "token")
            path.write_text("secret\n")
            environment = {**ENVIRONMENT, "AWORLD_TRAIN_CHANNEL_TOKEN": "", "AWORLD_TRAIN_CHANNEL_TOKEN_FILE": str(path)}
            self.assertEqual(read_settings({}, environment).token, "secret")
            path.unlink()
            with self.assertRaisesRegex(ChannelError, "AWORLD_TRAIN_CHANNEL_TOKEN_FILE"):
                read_settings({}, environment)

    def test_what_is_missing_is_named_with_its_remedy(self) -> None:
        with self.assertRaisesRegex(ChannelError, "AWORLD_TRAIN_CHANNEL to ws://"):
            read_settings({}, {})
        with self.assertRaisesRegex(ChannelError, "no WebSocket URL"):
            read_settings({"channel": "http://x"}, {})
        with self.assertRaisesRegex(ChannelError, "AWORLD_TRAIN_INCARNATION"):
            read_settings({"channel": "ws://x"}, {})
        self.assertEqual(read_settings({"channel": "ws://x"}, {}, lambda: "ray-1").incarnation, "ray-1")
        for deadline in ("soon", 0, -1, float("nan"), float("inf")):
            with self.subTest(deadline=deadline), self.assertRaisesRegex(ChannelError, "deadline_s"):
                read_settings({"deadline_s": deadline}, ENVIRONMENT)


def _write_for_ever(folder: str, ready) -> None:
    ledger = Ledger(Path(folder), "i")
    n = 0
    while True:
        ledger.write("sampled", {"n": n, "text": "x" * 200})
        n += 1
        if n == 500:
            ready.set()


class LedgerTest(unittest.TestCase):
    def test_records_of_a_killed_process_are_read_up_to_a_torn_last_line(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            context = multiprocessing.get_context("fork")
            ready = context.Event()
            process = context.Process(target=_write_for_ever, args=(folder, ready))
            process.start()
            ready.wait(60)
            os.kill(process.pid, signal.SIGKILL)
            process.join(60)
            [path] = Path(folder, "ledger", "i").iterdir()
            self.assertEqual(path.name, f"sampled-{process.pid}.jsonl")
            written = [record["n"] for record in read_ledger(path.parent, "sampled")]
            self.assertGreaterEqual(len(written), 500)
            self.assertEqual(written, list(range(len(written))))
            with path.open("ab") as file:
                file.write(b'{"n": 1')
            self.assertEqual(len(list(read_ledger(path.parent, "sampled"))), len(written))

    def test_without_a_run_path_nothing_is_written(self) -> None:
        ledger_of_environment({}).write("sampled", {})
        with tempfile.TemporaryDirectory() as folder:
            ledger = ledger_of_environment({"AWORLD_TRAIN_RUN_PATH": folder, "AWORLD_TRAIN_INCARNATION": "i"})
            ledger.write("trained", {"step": 1})
            ledger.close()
            self.assertEqual(json.loads(Path(folder, "ledger", "i", f"trained-{os.getpid()}.jsonl").read_text()), {"step": 1})


class VersionTest(unittest.TestCase):
    def test_the_tested_version_is_taken_a_newer_one_warned_of_an_older_one_refused(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            check_version("0.9.1")
            check_version("0.9.0.dev1")
        with self.assertWarnsRegex(RuntimeWarning, "verl 0.10.0 is newer"):
            check_version("0.10.0")
        for version in ("0.8.2", "0.5.0", "unknown"):
            with self.subTest(version=version), self.assertRaisesRegex(ChannelError, 'aworld-train setup verl'):
                check_version(version)


if __name__ == "__main__":
    unittest.main()

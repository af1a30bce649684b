"""Tokenizer files and the rendered conversation, with the real tokenizer of the main example."""

import os
import shutil
import tempfile
import unittest
from pathlib import Path

from aworld_train_bridge.shared import files
from aworld_train_bridge.shared.model_facts import stop_token_ids, vocabulary_size
from aworld_train_bridge.errors import ChannelError
from transformers import AutoTokenizer

MODEL = Path(os.environ["AWORLD_TRAIN_TEST_MODEL"])
RAISING = "{% for m in messages %}{% if m.role in %s %}{{ raise_exception('no') }}{% endif %}{{ m.role }}: {{ m.content }}\n{% endfor %}"


class ModelTest(unittest.TestCase):
    def setUp(self) -> None:
        self.tokenizer = AutoTokenizer.from_pretrained(MODEL)

    def test_files_are_those_of_the_folder(self) -> None:
        found = files.read_model_files(self.tokenizer)
        self.assertEqual(set(found), {"chat_template.jinja", "config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json"})
        self.assertEqual(found["tokenizer.json"], (MODEL / "tokenizer.json").read_bytes())
        self.assertEqual(files.files_hash(found), files.files_hash(dict(reversed(found.items()))))
        self.assertNotEqual(files.files_hash(found), files.files_hash({**found, "config.json": b"{}"}))

    def test_a_template_that_replaced_the_models_own_is_sent(self) -> None:
        self.tokenizer.chat_template = "{{ messages[0].content }}"
        self.assertEqual(files.read_model_files(self.tokenizer)["chat_template.jinja"], b"{{ messages[0].content }}")

    def test_a_folder_without_tokenizer_or_template_is_refused_with_the_remedy(self) -> None:
        self.tokenizer.chat_template = None
        with self.assertRaisesRegex(ChannelError, "chat_template.jinja"):
            files.read_model_files(self.tokenizer)
        with tempfile.TemporaryDirectory() as folder:
            shutil.copy(MODEL / "config.json", folder)
            self.tokenizer.name_or_path = folder
            with self.assertRaisesRegex(ChannelError, "no tokenizer.json"):
                files.read_model_files(self.tokenizer)

    def test_a_tokenizer_of_a_hub_is_written_out(self) -> None:
        self.tokenizer.name_or_path = "owner/model"
        found = files.read_model_files(self.tokenizer)
        self.assertIn("tokenizer.json", found)
        self.assertEqual(found["chat_template.jinja"].decode(), self.tokenizer.chat_template)

    def test_the_check_has_roles_a_call_and_its_result(self) -> None:
        check, ids = files.render_check(self.tokenizer, {})
        self.assertEqual([message["role"] for message in check["messages"]], ["system", "user", "assistant", "tool"])
        text = self.tokenizer.decode(ids)
        for part in ("You answer in one word.", '"element": "iron"', "55.85", "重量"):
            self.assertIn(part, text)
        self.assertTrue(text.rstrip().endswith("assistant"))

    def test_roles_that_a_template_refuses_are_left_out(self) -> None:
        for refused, roles in (("['system']", ["user", "assistant", "user"]), ("['tool']", ["system", "user", "assistant", "user"])):
            self.tokenizer.chat_template = RAISING.replace("%s", refused)
            check, _ = files.render_check(self.tokenizer, {})
            self.assertEqual([message["role"] for message in check["messages"]], roles)
        self.tokenizer.chat_template = RAISING.replace("%s", "['user']")
        with self.assertRaisesRegex(ChannelError, "cannot render a user message"):
            files.render_check(self.tokenizer, {})

    def test_stops_and_vocabulary(self) -> None:
        self.assertEqual(stop_token_ids(files.read_model_files(self.tokenizer), self.tokenizer), [257])
        self.assertEqual(stop_token_ids({"generation_config.json": b'{"eos_token_id": [5, 300]}'}, self.tokenizer), [5, 257, 300])
        self.assertEqual(vocabulary_size(str(MODEL), self.tokenizer), 752)


if __name__ == "__main__":
    unittest.main()

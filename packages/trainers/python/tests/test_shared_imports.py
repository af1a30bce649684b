import pkgutil
import subprocess
import sys
import unittest

from aworld_train_bridge import shared


class SharedImportsTest(unittest.TestCase):
    def test_what_every_framework_shares_imports_none_of_them(self) -> None:
        names = [f"aworld_train_bridge.shared.{module.name}" for module in pkgutil.iter_modules(shared.__path__)]
        self.assertGreater(len(names), 5)
        script = f"import sys\nfor name in {names!r}: __import__(name)\nprint(sorted({{'verl', 'trl', 'torch', 'ray', 'aworld_train_bridge.verl'}} & set(sys.modules)))"
        found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
        self.assertEqual(found.stdout.strip(), "[]")


if __name__ == "__main__":
    unittest.main()

"""Records a Python that a launch script starts by its path, or after it activated an environment, as the programs in front of PATH do.

Every Python that finds this folder on PYTHONPATH imports it before anything else.
"""

import os
import re
import sys

RECORDED = re.compile(r"verl\.[\w.]*main\w*|(?:.*/)?(?:main_ppo\w*\.py|torchrun|ray)")
REFUSED = re.compile(r"(?:.*/)?pip3?")


def main() -> None:
    record = os.environ.get("AWORLD_TRAIN_RECORD")
    words = getattr(sys, "orig_argv", [])[1:]
    refused = [each for each in words[:3] if REFUSED.fullmatch(each)]
    if not record or not (refused or any(RECORDED.fullmatch(each) for each in words)):
        return
    parts = ["refused" if refused else "recorded", "python", str(len(words)), *words]
    with open(record, "ab") as file:
        file.write(b"".join(os.fsencode(each) + b"\0" for each in parts))
        file.write(b"".join(os.fsencode(f"{name}={value}") + b"\0" for name, value in os.environ.items()) + b"\0")
    os._exit(1 if refused else 0)


main()

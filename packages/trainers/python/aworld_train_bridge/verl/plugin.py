"""For VERL_USE_EXTERNAL_MODULES: verl imports this in every one of its processes (verl/__init__.py, 0.9.1).

Checks verl's version, and with AWORLD_TRAIN_SMOKE=1 makes the CPU parts for smoke tests known.
"""

from __future__ import annotations

import os


def install() -> None:
    from verl import __version__

    from .version import check_version

    check_version(__version__)
    if os.environ.get("AWORLD_TRAIN_SMOKE") == "1":
        from ..smoke.plugin import install as install_smoke

        install_smoke()


install()

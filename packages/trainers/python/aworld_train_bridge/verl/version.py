"""Which versions of verl this bridge was tested with."""

from __future__ import annotations

import re
import warnings

from ..errors import ChannelError

TESTED = (0, 9)


def check_version(version: str) -> None:
    """Takes 0.9.x; warns once for a newer one; raises ChannelError TRAINER_ENVIRONMENT for an older one, with the remedy."""
    match = re.match(r"(\d+)\.(\d+)", version)
    found = (int(match[1]), int(match[2])) if match else (0, 0)
    if found < TESTED:
        message = f'verl {version} is older than 0.9, whose V1 trainer the bridge needs; run "aworld-train setup verl", or pip install "verl==0.9.1".'
        raise ChannelError("TRAINER_ENVIRONMENT", message)
    if found > TESTED:
        warnings.warn(f"verl {version} is newer than 0.9, with which AWorld Train was tested; if it fails, install verl==0.9.1.", RuntimeWarning, stacklevel=2)

"""Prints the scalars of a folder of event files as TensorBoard reads them: tag to [step, value] in the order of the files."""

import json
import sys

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

accumulator = EventAccumulator(sys.argv[1], size_guidance={"scalars": 0})
accumulator.Reload()
tags = accumulator.Tags()["scalars"]
print(json.dumps({tag: [[event.step, event.value] for event in accumulator.Scalars(tag)] for tag in tags}))

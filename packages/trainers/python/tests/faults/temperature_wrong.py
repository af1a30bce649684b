"""A fault for verl: its engine samples colder than the trainer computes.

Named in VERL_USE_EXTERNAL_MODULES, it stands in the process of the engine.
"""

from aworld_train_bridge.sample import server

_read = server.read_sampling
server.read_sampling = lambda options, **limits: _read({**options, "temperature": 0.7}, **limits)

"""A fault for verl: its engine samples with the weights that the training began with, and says that they are the newest.

Named in VERL_USE_EXTERNAL_MODULES, it stands in the process of the engine.
"""

from aworld_train_bridge.sample import server

server.load_weights = lambda model, sent: len(sent)

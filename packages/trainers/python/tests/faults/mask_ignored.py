"""A fault for verl: it trains what the environment said as if it had been sampled.

Named in VERL_USE_EXTERNAL_MODULES, it stands in the process that hands rows to verl.
"""

from aworld_train_bridge.verl import rows

_tokens = rows._tokens
rows._tokens = lambda row: {**_tokens(row), "response_mask": [1] * len(row.response_mask)}

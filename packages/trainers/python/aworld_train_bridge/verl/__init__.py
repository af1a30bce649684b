"""verl's side of the bridge: agent loop, plug-in, ledger (verl 0.9)."""

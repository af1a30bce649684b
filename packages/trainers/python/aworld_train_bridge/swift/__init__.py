"""ms-swift's side of the bridge: its GRPOTrainer, whose rollouts an agent in AWorld Train makes (ms-swift 4.6)."""

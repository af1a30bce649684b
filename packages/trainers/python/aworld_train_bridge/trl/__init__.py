"""TRL's side of the bridge: its GRPOTrainer, whose rollouts an agent in AWorld Train makes (TRL 1.16)."""

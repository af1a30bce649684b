"""AReaL's side of the bridge: its PPOTrainer, whose rollouts an agent in AWorld Train makes (AReaL 1.0.4)."""

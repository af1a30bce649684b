"""Shared by the trainers that build on transformers' Trainer and its GRPOTrainer (TRL, ms-swift)."""

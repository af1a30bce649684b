"""Carries rollouts and model calls between a training framework and AWorld Train."""

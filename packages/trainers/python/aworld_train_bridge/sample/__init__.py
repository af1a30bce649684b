"""Continuous batching over one Hugging Face model: for frameworks whose own model samples, and for verl on CPU."""

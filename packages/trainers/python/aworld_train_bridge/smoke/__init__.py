"""verl on CPU, for smoke tests: a platform, and a rollout server around the sampler of `sample/`."""

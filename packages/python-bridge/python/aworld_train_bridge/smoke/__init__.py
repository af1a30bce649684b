"""verl on CPU, for smoke tests: a platform, a sampler, and checks that are of use on GPUs too (replay buffer, batch ledger)."""

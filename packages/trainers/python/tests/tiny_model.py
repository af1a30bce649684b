"""A model of random weights that samples a few hundred tokens a second on any machine."""

import torch
from transformers import Qwen3Config, Qwen3ForCausalLM

END = 7


def tiny_model(*, seed: int = 0, tied: bool = True) -> torch.nn.Module:
    """Two layers, grouped queries, 41 tokens; the token END ends a turn."""
    torch.manual_seed(seed)
    config = Qwen3Config(
        vocab_size=41,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=8,
        max_position_embeddings=96,
        tie_word_embeddings=tied,
        eos_token_id=END,
        pad_token_id=END,
        attn_implementation="sdpa",
    )
    model = Qwen3ForCausalLM(config).float().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.normal_(0, 0.25)
    return model


def letters(ids: object) -> str:
    """Ids as text, a character each."""
    return "".join(chr(ord("A") + id) for id in ids)

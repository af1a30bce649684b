"""Writes a checkpoint of AReaL, which is one of torch.distributed, as a Hugging Face folder.

Run as ``python -m aworld_train_bridge.areal.export_model --checkpoint DIR --model DIR --target DIR [--dtype keep|bfloat16]``.
"""

import argparse
from pathlib import Path
from typing import Any


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--checkpoint", type=Path, required=True, help="folder of one checkpoint")
    parser.add_argument("--model", required=True, help="folder of the model that the training began with")
    parser.add_argument("--target", required=True, help="folder to write")
    parser.add_argument("--dtype", choices=("keep", "bfloat16"), default="keep")
    options = parser.parse_args()

    import torch
    from aworld_train_bridge.sample.weights import load_weights
    from transformers import AutoModelForCausalLM, AutoTokenizer

    model = AutoModelForCausalLM.from_pretrained(options.model, dtype=torch.float32)
    load_weights(model, read_weights(options.checkpoint))
    if options.dtype == "bfloat16":
        model = model.to(torch.bfloat16)
    model.save_pretrained(options.target)
    AutoTokenizer.from_pretrained(options.model).save_pretrained(options.target)


def read_weights(checkpoint: Path) -> dict[str, Any]:
    """Tensors by the names that they have in the model (`DCPState` of areal/engine/fsdp_utils/checkpoint.py, AReaL 1.0.4)."""
    import torch
    import torch.distributed.checkpoint as dcp
    from torch.distributed.checkpoint.metadata import TensorStorageMetadata

    found = sorted(path.parent for path in checkpoint.rglob("recover_checkpoint/.metadata"))
    if not found:
        raise SystemExit(f"{checkpoint} has no weights; take another checkpoint")
    reader = dcp.FileSystemReader(found[0])
    prefix = "dcp.model."
    described = {
        name: value for name, value in reader.read_metadata().state_dict_metadata.items() if name.startswith(prefix) and isinstance(value, TensorStorageMetadata)
    }
    tensors = {name: torch.empty(value.size, dtype=value.properties.dtype) for name, value in described.items()}
    dcp.load(tensors, storage_reader=reader, no_dist=True)
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items()}


if __name__ == "__main__":
    main()

"""Writes verl's FSDP checkpoint of an actor as a Hugging Face folder, with verl's own merger (verl/model_merger, 0.9.1).

Run as ``python -m aworld_train_bridge.verl.export_model --actor DIR --target DIR [--dtype keep|bfloat16]``. verl's merger
turns every weight into bfloat16; ``keep`` leaves weights as they were trained, which for a model in float32 are other numbers.
"""

import argparse
import json
from pathlib import Path


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--actor", required=True, help="folder with fsdp_config.json and model_world_size_*.pt")
    parser.add_argument("--target", required=True, help="folder to write")
    parser.add_argument("--dtype", choices=("keep", "bfloat16"), default="keep")
    options = parser.parse_args()

    import torch
    from verl.model_merger.base_model_merger import ModelMergerConfig
    from verl.model_merger.fsdp_model_merger import FSDPModelMerger

    if options.dtype == "keep":
        torch.Tensor.bfloat16 = lambda self, *_, **__: self  # of this process, which does nothing else
    actor = Path(options.actor)
    config = ModelMergerConfig(
        operation="merge",
        backend="fsdp",
        local_dir=str(actor),
        target_dir=options.target,
        hf_model_config_path=str(actor / "huggingface"),
    )
    merger = FSDPModelMerger(config)
    merger.merge_and_save()
    merger.cleanup()
    name_dtype(Path(options.target))


def name_dtype(target: Path) -> None:
    """Says in config.json what the weights are: the merger writes bfloat16 whatever they are."""
    from safetensors import safe_open

    names = set()
    for file in sorted(target.glob("*.safetensors")):
        with safe_open(file, framework="pt") as weights:
            names |= {str(weights.get_tensor(key).dtype).removeprefix("torch.") for key in weights.keys()}
    path = target / "config.json"
    config = json.loads(path.read_text())
    if len(names) == 1:
        key = "torch_dtype" if "torch_dtype" in config else "dtype"
        config[key] = names.pop()
        path.write_text(json.dumps(config, indent=2) + "\n")


if __name__ == "__main__":
    main()

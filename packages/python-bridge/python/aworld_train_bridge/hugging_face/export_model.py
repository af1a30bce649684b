"""Writes a checkpoint of transformers' Trainer as a Hugging Face folder; an adapter is merged into the model that it was trained on.

Run as ``python -m aworld_train_bridge.hugging_face.export_model --checkpoint DIR --target DIR [--dtype keep|bfloat16]``.
"""

import argparse
from pathlib import Path


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--checkpoint", type=Path, required=True, help="folder of one checkpoint")
    parser.add_argument("--target", required=True, help="folder to write")
    parser.add_argument("--dtype", choices=("keep", "bfloat16"), default="keep")
    options = parser.parse_args()

    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    if (options.checkpoint / "adapter_config.json").is_file():
        from peft import AutoPeftModelForCausalLM

        model = AutoPeftModelForCausalLM.from_pretrained(options.checkpoint, dtype="auto").merge_and_unload()
    else:
        model = AutoModelForCausalLM.from_pretrained(options.checkpoint, dtype="auto")
    if options.dtype == "bfloat16":
        model = model.to(torch.bfloat16)
    model.save_pretrained(options.target)
    AutoTokenizer.from_pretrained(options.checkpoint).save_pretrained(options.target)


if __name__ == "__main__":
    main()

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

        adapted = AutoPeftModelForCausalLM.from_pretrained(options.checkpoint, dtype="auto")
        base = adapted.peft_config["default"].base_model_name_or_path
        model = adapted.merge_and_unload()
    else:
        base = None
        model = AutoModelForCausalLM.from_pretrained(options.checkpoint, dtype="auto")
    if options.dtype == "bfloat16":
        model = model.to(torch.bfloat16)
    model.save_pretrained(options.target)
    # Some trainers put the tokenizer beside an adapter, others leave it with the model.
    own = (options.checkpoint / "tokenizer_config.json").is_file()
    AutoTokenizer.from_pretrained(options.checkpoint if own else base).save_pretrained(options.target)


if __name__ == "__main__":
    main()

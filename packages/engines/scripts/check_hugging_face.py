"""Loads what write-hugging-face-check.mjs wrote with transformers and compares. Needs torch, transformers 5 and tokenizers.

usage: python check_hugging_face.py FOLDER
"""

import json
import sys
from pathlib import Path

import tokenizers
import torch
import transformers

failed = False
print("transformers", transformers.__version__, "tokenizers", tokenizers.__version__, "torch", torch.__version__)
for folder in sorted(path.parent for path in Path(sys.argv[1]).glob("*/expected.json")):
    expected = json.loads((folder / "expected.json").read_text())
    rust = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    auto = transformers.AutoTokenizer.from_pretrained(folder)
    other_ids = other_text = other_auto = 0
    for encoding in expected["encodings"]:
        ids = rust.encode(encoding["text"], add_special_tokens=False).ids
        other_ids += ids != encoding["ids"]
        other_text += rust.decode(ids, skip_special_tokens=False) != encoding["text"]
        other_auto += auto.encode(encoding["text"], add_special_tokens=False) != ids or auto.decode(ids) != encoding["text"]
    model, loading = transformers.AutoModelForCausalLM.from_pretrained(folder, output_loading_info=True)
    row = torch.tensor([expected["prompt"] + expected["ids"]])
    with torch.no_grad():
        logprobs = torch.log_softmax(model(row).logits[0].float() / expected["temperature"], -1)
    start, count = len(expected["prompt"]), len(expected["ids"])
    found = logprobs[torch.arange(start - 1, start - 1 + count), torch.tensor(expected["ids"])]
    difference = (found - torch.tensor(expected["logprobs"])).abs().max().item()
    good = not (other_ids or other_text or other_auto or loading["missing_keys"] or loading["unexpected_keys"]) and difference < 5e-5
    failed |= not good
    print(
        f"{'ok  ' if good else 'FAIL'} {folder.name}: {type(model).__name__}, {len(expected['encodings'])} texts, "
        f"{other_ids} other ids, {other_text} other texts, {other_auto} differ in AutoTokenizer, "
        f"missing {sorted(loading['missing_keys'])}, unexpected {sorted(loading['unexpected_keys'])}, "
        f"{count} sampled logprobs differ by at most {difference:.1e}"
    )
sys.exit(1 if failed else 0)

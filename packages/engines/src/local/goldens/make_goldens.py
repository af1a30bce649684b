"""Writes the goldens beside this file: logprobs, losses and gradients of small models, by PyTorch in float64.

Run: python make_goldens.py   (needs torch and numpy; versions used: see "madeWith" in the files)
"""

import base64
import json
import pathlib

import numpy
import torch
import torch.nn.functional as F

HERE = pathlib.Path(__file__).parent

BASE = dict(
    vocabularySize=37, hiddenSize=24, layers=2, heads=4, kvHeads=2, headDim=8, intermediateSize=20,
    ropeTheta=10000.0, rmsNormEps=1e-6, tieWordEmbeddings=True, qkNorm=True, contextLength=96,
)
CASES = {
    "gqa-tied": (BASE, [9, 1, 2, 17, 33, 5], 1.0),
    "mha-untied-plain-heads": (
        {**BASE, "vocabularySize": 29, "hiddenSize": 16, "heads": 2, "qkNorm": False, "tieWordEmbeddings": False}, [7, 2, 12, 3], 1.0),
    "long-one-key-head": ({**BASE, "layers": 1, "heads": 3, "kvHeads": 1, "headDim": 16, "ropeTheta": 500.0}, [70, 1, 40], 1.0),
    "untied-temperature": ({**BASE, "hiddenSize": 12, "kvHeads": 4, "tieWordEmbeddings": False}, [11, 6, 2, 24], 0.7),
    "beyond-one-block": (
        {**BASE, "vocabularySize": 531, "hiddenSize": 8, "layers": 1, "heads": 1, "kvHeads": 1, "intermediateSize": 268}, [21, 14], 1.0),
}
LOSSES = {
    "sft-token-mean": ("sft", "token-mean"),
    "sft-sequence-mean": ("sft", "sequence-mean"),
    "ppo-token-mean": ("ppo-clip", "token-mean"),
    "ppo-sequence-mean": ("ppo-clip", "sequence-mean"),
}
PPO = dict(clipLow=0.2, clipHigh=0.28, klCoefficient=0.05, entropyCoefficient=0.01)


class Numbers:
    """A linear congruential generator (Numerical Recipes), the same as in goldens.ts."""

    def __init__(self, seed):
        self.state = seed

    def next(self):
        self.state = (self.state * 1664525 + 1013904223) % 2**32
        return self.state / 2**32

    def array(self, n, scale=1.0):
        return numpy.array([(self.next() * 2 - 1) * scale for _ in range(n)], dtype=numpy.float32)


def parameter_shapes(c):
    d, q, kv, hd, ff = c["hiddenSize"], c["heads"] * c["headDim"], c["kvHeads"] * c["headDim"], c["headDim"], c["intermediateSize"]
    yield "embed", (c["vocabularySize"], d)
    for layer in range(c["layers"]):
        yield f"{layer}.input_norm", (d,)
        yield f"{layer}.q", (q, d)
        yield f"{layer}.k", (kv, d)
        yield f"{layer}.v", (kv, d)
        if c["qkNorm"]:
            yield f"{layer}.q_norm", (hd,)
            yield f"{layer}.k_norm", (hd,)
        yield f"{layer}.o", (d, q)
        yield f"{layer}.post_norm", (d,)
        yield f"{layer}.gate", (ff, d)
        yield f"{layer}.up", (ff, d)
        yield f"{layer}.down", (d, ff)
    yield "norm", (d,)
    if not c["tieWordEmbeddings"]:
        yield "head", (c["vocabularySize"], d)


def make_parameters(c, numbers):
    out = {}
    for name, shape in parameter_shapes(c):
        values = numbers.array(int(numpy.prod(shape)), 0.2 if len(shape) == 1 else 0.5)
        if len(shape) == 1:
            values = values + numpy.float32(1)
        out[name] = torch.tensor(values.reshape(shape), dtype=torch.float64, requires_grad=True)
    return out


def norm(x, weight, eps):
    return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + eps) * weight


def rotate(x, cosines, sines):
    a, b = x.chunk(2, -1)
    return x * cosines + torch.cat([-b, a], -1) * sines


def logits(c, p, ids):
    n, hd = len(ids), c["headDim"]
    inverse = 1.0 / (c["ropeTheta"] ** (torch.arange(0, hd, 2).float() / hd))
    angles = torch.outer(torch.arange(n).float(), inverse).double()
    angles = torch.cat([angles, angles], -1)[:, None]
    cosines, sines = angles.cos(), angles.sin()
    x = p["embed"][ids]
    mask = torch.full((n, n), float("-inf"), dtype=torch.float64).triu(1)
    for layer in range(c["layers"]):
        w = lambda name: p[f"{layer}.{name}"]
        h = norm(x, w("input_norm"), c["rmsNormEps"])
        q = (h @ w("q").T).view(n, c["heads"], hd)
        k = (h @ w("k").T).view(n, c["kvHeads"], hd)
        v = (h @ w("v").T).view(n, c["kvHeads"], hd)
        if c["qkNorm"]:
            q, k = norm(q, w("q_norm"), c["rmsNormEps"]), norm(k, w("k_norm"), c["rmsNormEps"])
        q, k = rotate(q, cosines, sines), rotate(k, cosines, sines)
        group = c["heads"] // c["kvHeads"]
        k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
        scores = torch.einsum("qhd,khd->hqk", q, k) / hd**0.5 + mask
        mixed = torch.einsum("hqk,khd->qhd", scores.softmax(-1), v).reshape(n, -1)
        x = x + mixed @ w("o").T
        h = norm(x, w("post_norm"), c["rmsNormEps"])
        x = x + (F.silu(h @ w("gate").T) * (h @ w("up").T)) @ w("down").T
    return norm(x, p["norm"], c["rmsNormEps"]) @ p["embed" if c["tieWordEmbeddings"] else "head"].T


def encode(values):
    return base64.b64encode(numpy.asarray(values, dtype="<f4").tobytes()).decode()


def make(name, c, lengths, temperature):
    numbers = Numbers(7)
    p = make_parameters(c, numbers)
    rows, total, distributions = [], 0, []
    for length in lengths:
        ids = [int(numbers.next() * c["vocabularySize"]) for _ in range(length)]
        log_p = torch.log_softmax(logits(c, p, torch.tensor(ids)) / temperature, -1)[:-1]
        logprob = log_p[torch.arange(length - 1), torch.tensor(ids[1:], dtype=torch.long)]
        mask = [0] + [1 if numbers.next() < 0.6 else 0 for _ in range(length - 1)]
        known = numpy.concatenate([[0], logprob.detach().numpy()]).astype(numpy.float32)
        row = dict(
            tokenIds=ids, lossMask=mask, advantage=float(numpy.float32(numbers.next() * 4 - 2)),
            rollout=known + numbers.array(length, 0.5), reference=known + numbers.array(length, 0.5), logprobs=known,
        )
        rows.append(row)
        distributions.append((log_p, logprob))
    trained = [sum(row["lossMask"]) for row in rows]
    losses = {}
    for loss_name, (kind, aggregation) in LOSSES.items():
        loss, kl_sum, entropy_sum, clipped_sum = 0.0, 0.0, 0.0, 0.0
        for row, (log_p, logprob), count in zip(rows, distributions, trained):
            if count == 0:
                continue
            mask = torch.tensor(row["lossMask"][1:], dtype=torch.float64)
            weight = mask / (sum(trained) if aggregation == "token-mean" else count * sum(1 for n in trained if n))
            entropy = -(log_p.exp() * log_p).sum(-1)
            entropy_sum += float((mask * entropy).sum())
            if kind == "sft":
                loss = loss - (weight * logprob).sum()
                continue
            ratio = (logprob - torch.tensor(row["rollout"][1:], dtype=torch.float64)).exp()
            free = ratio * row["advantage"]
            bound = ratio.clamp(1 - PPO["clipLow"], 1 + PPO["clipHigh"]) * row["advantage"]
            difference = torch.tensor(row["reference"][1:], dtype=torch.float64) - logprob
            kl = difference.exp() - difference - 1
            kl_sum += float((mask * kl).sum())
            clipped_sum += float((mask * (bound < free)).sum())
            each = -torch.minimum(free, bound) + PPO["klCoefficient"] * kl - PPO["entropyCoefficient"] * entropy
            loss = loss + (weight * each).sum()
        gradients = torch.autograd.grad(loss, list(p.values()), retain_graph=True)
        flat = torch.cat([g.flatten() for g in gradients])
        tokens = sum(trained)
        losses[loss_name] = dict(
            kind=kind, aggregation=aggregation, loss=float(loss), gradNorm=float(flat.norm()), kl=kl_sum / tokens, entropy=entropy_sum / tokens,
            clipFraction=clipped_sum / tokens, gradient=encode(flat),
        )
    for row in rows:
        for key in ("rollout", "reference", "logprobs"):
            row[key] = encode(row[key])
    golden = dict(madeWith=f"torch {torch.__version__.split('+')[0]}", seed=7, model=c, temperature=temperature, ppo=PPO, rows=rows, losses=losses)
    (HERE / f"{name}.json").write_text(json.dumps(golden) + "\n")


for case, (model, row_lengths, row_temperature) in CASES.items():
    make(case, model, row_lengths, row_temperature)

"""Tokens per second of PyTorch on the CPU, for the engine's benchmark: training and sampling of the same model.

Reads one JSON object from standard input ({"model", "threads", "rows", "length", "seconds"}), prints one:
{"train": tokens per second, "sample": tokens per second, "parameters": count, "torch": version}.
"""

import json
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn

job = json.load(sys.stdin)
c, rows, length = job["model"], job["rows"], job["length"]
torch.set_num_threads(job["threads"])
torch.manual_seed(0)
d, heads, kv, hd, ff = c["hiddenSize"], c["heads"], c["kvHeads"], c["headDim"], c["intermediateSize"]


class Norm(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))

    def forward(self, x):
        return F.rms_norm(x, (x.shape[-1],), self.weight, c["rmsNormEps"])


def turn(x):
    a, b = x.chunk(2, -1)
    return torch.cat([-b, a], -1)


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.input_norm, self.post_norm, self.q_norm, self.k_norm = Norm(d), Norm(d), Norm(hd), Norm(hd)
        self.qkv = nn.Linear(d, (heads + 2 * kv) * hd, bias=False)
        self.out = nn.Linear(heads * hd, d, bias=False)
        self.gate_up = nn.Linear(d, 2 * ff, bias=False)
        self.down = nn.Linear(ff, d, bias=False)

    def forward(self, x, cosines, sines, cache, position):
        n, t, _ = x.shape
        q, k, v = self.qkv(self.input_norm(x)).view(n, t, heads + 2 * kv, hd).split([heads, kv, kv], 2)
        q, k, v = self.q_norm(q).transpose(1, 2), self.k_norm(k).transpose(1, 2), v.transpose(1, 2)
        q, k = q * cosines + turn(q) * sines, k * cosines + turn(k) * sines
        if cache is not None:
            cache[0][:, :, position : position + t], cache[1][:, :, position : position + t] = k, v
            k, v = cache[0][:, :, : position + t], cache[1][:, :, : position + t]
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=t > 1, enable_gqa=kv != heads)
        x = x + self.out(mixed.transpose(1, 2).reshape(n, t, -1))
        gate, up = self.gate_up(self.post_norm(x)).chunk(2, -1)
        return x + self.down(F.silu(gate) * up)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(c["vocabularySize"], d)
        self.layers = nn.ModuleList([Layer() for _ in range(c["layers"])])
        self.norm = Norm(d)
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.normal_(parameter, 0, 0.02)
        angles = torch.outer(torch.arange(length + 8).float(), 1 / c["ropeTheta"] ** (torch.arange(0, hd, 2).float() / hd))
        angles = torch.cat([angles, angles], -1)
        self.cosines, self.sines = angles.cos(), angles.sin()

    def forward(self, ids, caches=None, position=0):
        x = self.embedding(ids)
        t = ids.shape[1]
        cosines, sines = self.cosines[position : position + t], self.sines[position : position + t]
        for i, layer in enumerate(self.layers):
            x = layer(x, cosines, sines, None if caches is None else caches[i], position)
        return F.linear(self.norm(x), self.embedding.weight)


model = Model()
optimizer = torch.optim.AdamW(model.parameters(), 1e-3, betas=(0.9, 0.98), weight_decay=0.01, fused=True)
ids = torch.randint(0, c["vocabularySize"], (rows, length))


def train():
    optimizer.zero_grad()
    loss = F.cross_entropy(model(ids)[:, :-1].reshape(-1, c["vocabularySize"]), ids[:, 1:].reshape(-1))
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    return rows * length


@torch.inference_mode()
def sample():
    caches = [(torch.zeros(rows, kv, length + 8, hd), torch.zeros(rows, kv, length + 8, hd)) for _ in range(c["layers"])]
    logits = model(ids[:, :4], caches, 0)[:, -1]
    for position in range(4, length + 4):
        logprobs = torch.log_softmax(logits, -1)
        drawn = torch.multinomial(logprobs.exp(), 1)
        logprobs.gather(1, drawn)
        logits = model(drawn, caches, position)[:, -1]
    return rows * length


def rate(step):
    warm = time.perf_counter()
    while time.perf_counter() - warm < 1:
        step()
    tokens, start = 0, time.perf_counter()
    while time.perf_counter() - start < job["seconds"]:
        tokens += step()
    return tokens / (time.perf_counter() - start)


print(json.dumps(dict(
    train=rate(train), sample=rate(sample), parameters=sum(p.numel() for p in model.parameters()), torch=torch.__version__,
)))

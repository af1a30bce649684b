"""Bytes that the Python SDK of Tinker writes and reads, for the codec to be held to.

    uv run --no-project --with tinker==0.38.0 python make-goldens.py > tinker-wire.json
"""

import base64
import json

import numpy as np
import tinker
from tinker import types
from tinker.proto import tinker_public_pb2 as pb
from tinker.proto.request_conv import forward_backward_request_to_proto


def text(message):
    # Maps have no order of their own; this writes them by key.
    return base64.b64encode(message.SerializeToString(deterministic=True)).decode()


def tensor(values, dtype):
    return types.TensorData(data=values, dtype=dtype, shape=[len(values)])


def request(tokens, inputs, loss_fn, config, forward_only=False):
    data = [
        types.Datum(
            model_input=types.ModelInput.from_ints(row),
            loss_fn_inputs={
                name: tensor(values, "int64" if name == "target_tokens" else "float32") for name, values in each.items()
            },
        )
        for row, each in zip(tokens, inputs, strict=True)
    ]
    message = forward_backward_request_to_proto(
        types.ForwardBackwardRequest(
            forward_backward_input=types.ForwardBackwardInput(data=data, loss_fn=loss_fn, loss_fn_config=config),
            model_id="model_1",
            seq_id=300,
        )
    )
    if forward_only:
        message.forward_only = True
    fields = {"modelId": "model_1", "seqId": 300, "lossFunction": loss_fn, "lossConfig": config or {}, "forwardOnly": forward_only}
    rows = [{"tokens": row, "inputs": each} for row, each in zip(tokens, inputs, strict=True)]
    return {"fields": fields, "rows": rows, "bytes": text(message)}


ppo = request(
    [[1, 2, 70_000], [4, 5]],
    [
        {"target_tokens": [2, 70_000, 9], "weights": [0, 1, 1], "logprobs": [0, -0.5, -1.25], "advantages": [0, 1.5, 1.5]},
        {"target_tokens": [5, 6], "weights": [0, 1], "logprobs": [0, -2], "advantages": [0, -0.75]},
    ],
    "ppo",
    {"clip_low_threshold": 0.8, "clip_high_threshold": 1.28},
)
forward = request([[7, 8]], [{"target_tokens": [8, 9], "weights": [1, 1]}], "cross_entropy", None, True)

sample = pb.SampleResponse(
    sequences=[
        pb.SampledSequence(
            stop_reason=pb.STOP_REASON_LENGTH,
            tokens=np.array([5, 70_000], dtype=np.int32).tobytes(),
            logprobs=np.array([-0.5, -1.25], dtype=np.float32).tobytes(),
        ),
        pb.SampledSequence(
            stop_reason=pb.STOP_REASON_STOP,
            tokens=np.array([257], dtype=np.int32).tobytes(),
            logprobs=np.array([-2.0], dtype=np.float32).tobytes(),
        ),
    ],
    prompt_cache_hit_tokens=3,
)


def output(values, dtype, bytes_a_number):
    result = pb.ForwardBackwardOutput(loss_fn_output_type="ArrayRecord")
    record = result.loss_fn_outputs.add()
    record.num_datums = len(values)
    offsets = np.cumsum([0, *[len(row) * bytes_a_number for row in values]]).astype(np.int64)
    flat = np.array([value for row in values for value in row], dtype=np.float32)
    data = (flat.view(np.uint32) >> 16).astype(np.uint16).tobytes() if dtype == pb.DTYPE_BFLOAT16 else flat.tobytes()
    record.fields["elementwise_loss"].CopyFrom(pb.BatchedTensor(data=b"", offsets=b"", dtype=pb.DTYPE_FLOAT32))
    record.fields["logprobs"].CopyFrom(pb.BatchedTensor(data=data, offsets=offsets.tobytes(), dtype=dtype))
    result.metrics["loss:sum"] = 1.5
    return {"logprobs": values, "metrics": {"loss:sum": 1.5}, "bytes": text(result)}


rows = [[-0.5, -1.25, -2.0], [-4.0]]
print(
    json.dumps(
        {
            "sdk": tinker.__version__,
            "requests": [ppo, forward],
            "sample": {
                "sequences": [
                    {"stopped": False, "tokenIds": [5, 70_000], "logprobs": [-0.5, -1.25]},
                    {"stopped": True, "tokenIds": [257], "logprobs": [-2.0]},
                ],
                "bytes": text(sample),
            },
            "outputs": [output(rows, pb.DTYPE_FLOAT32, 4), output(rows, pb.DTYPE_BFLOAT16, 2)],
        },
        indent=2,
    )
)

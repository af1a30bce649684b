"""Worker extension for vLLM: `--worker-extension-cls aworld_train_vllm.WeightSync`, with this folder on PYTHONPATH."""

import os


class WeightSync:
    """Methods that vLLM mixes into its worker; `POST /collective_rpc` calls them. Checked with vLLM 0.32."""

    def sync_from_dir(self, path: str) -> dict:
        """Loads the safetensors of a folder, then packs again what the CPU kernels keep packed copies of.

        What is wrong with the folder comes back as `error`: vLLM takes the layers apart before it reads, so a reload
        that raises leaves a dead engine.
        """
        if not os.path.isdir(path):
            return {"error": f"{path} is not a folder on this machine"}
        try:
            readable = _check_safetensors(path)
        except Exception as error:
            return {"error": f"{path}: {type(error).__name__}: {error}"}
        if not readable:
            return {"error": f"{path} has no .safetensors file"}
        self.model_runner.reload_weights(weights_path=path)
        return {"repacked": _repack(self.model_runner.get_model())}


def _check_safetensors(path: str) -> int:
    from safetensors import safe_open

    names = [name for name in os.listdir(path) if name.endswith(".safetensors")]
    for name in names:
        with safe_open(os.path.join(path, name), framework="pt") as file:
            file.keys()
    return len(names)


def _repack(model) -> int:
    count = 0
    for module in model.modules():
        weight = getattr(module, "weight", None)
        if hasattr(module, "cpu_linear") and weight is not None and weight.ndim == 2 and weight.numel():
            from vllm.model_executor.layers.utils import dispatch_cpu_unquantized_gemm

            dispatch_cpu_unquantized_gemm(module, remove_weight=False)
            count += 1
    return count

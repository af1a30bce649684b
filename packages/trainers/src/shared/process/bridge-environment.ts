import type { BridgeVariables } from '@aworld-train/core'
import { withBridge } from '../python-package.ts'

/** Variables that torch, CUDA, engines and loggers read, and those that any process needs. */
const names: ReadonlySet<string> = new Set([
  'AWORLD_TRAIN_BATCHES',
  'CONDA_PREFIX',
  'HOME',
  'HOSTNAME',
  'LANG',
  'LANGUAGE',
  'LD_LIBRARY_PATH',
  'LD_PRELOAD',
  'LOGNAME',
  'NO_PROXY',
  'HTTP_PROXY',
  'HTTPS_PROXY',
  'ALL_PROXY',
  'no_proxy',
  'http_proxy',
  'https_proxy',
  'all_proxy',
  'PATH',
  'PYTHONPATH',
  'PYTHONUNBUFFERED',
  'PYTHONWARNINGS',
  'PYTHONHASHSEED',
  'REQUESTS_CA_BUNDLE',
  'SHELL',
  'SSL_CERT_DIR',
  'SSL_CERT_FILE',
  'SYSTEMROOT',
  'TEMP',
  'TENSORBOARD_DIR',
  'TMP',
  'TMPDIR',
  'TOKENIZERS_PARALLELISM',
  'TRITON_CACHE_DIR',
  'TZ',
  'USER',
  'VIRTUAL_ENV',
  'XDG_CACHE_HOME',
])

const prefixes: readonly string[] = [
  'ASCEND_',
  'CLEARML_',
  'CUBLAS_',
  'CUDA_',
  'CUDNN_',
  'FLASHINFER_',
  'GLOO_',
  'GOMP_',
  'GPU_',
  'HCCL_',
  'HF_',
  'HIP_',
  'HSA_',
  'HUGGINGFACE_',
  'KMP_',
  'LC_',
  'MKL_',
  'MLFLOW_',
  'MODELSCOPE_',
  'NCCL_',
  'NUMEXPR_',
  'NVIDIA_',
  'NVTE_',
  'NVTX_',
  'OMP_',
  'OPENBLAS_',
  'PYTORCH_',
  'ROCM_',
  'ROCR_',
  'SGLANG_',
  'SGL_',
  'SWANLAB_',
  'TORCH',
  'TRANSFORMERS_',
  'UCX_',
  'VLLM_',
  'WANDB_',
]

/** Prefixes of variables that a framework reads besides those of torch and engines, and its own values, which win over inherited ones. */
export interface BridgeEnvironmentOptions {
  readonly inherited: Readonly<Record<string, string | undefined>>
  readonly prefixes: readonly string[]
  readonly ownVariables: Readonly<Record<string, string>>
}

/**
 * The environment of a framework's processes. From `inherited` it has only what they read, because keys of third parties are none of their
 * business; then come `ownVariables`, then those of the bridge. Folders of PYTHONPATH come after the bridge's.
 */
export function bridgeEnvironment(
  bridge: BridgeVariables,
  { inherited, prefixes: ownPrefixes, ownVariables }: BridgeEnvironmentOptions,
): Record<string, string> {
  const environment: Record<string, string> = {}
  const read = [...prefixes, ...ownPrefixes]
  for (const [name, value] of Object.entries(inherited)) {
    if (value !== undefined && (names.has(name) || read.some((prefix) => name.startsWith(prefix)))) environment[name] = value
  }
  Object.assign(environment, ownVariables)
  return {
    ...withBridge(environment, bridge.bridgeDirectory),
    PYTHONUNBUFFERED: '1',
    AWORLD_TRAIN_CHANNEL: bridge.channelUrl,
    AWORLD_TRAIN_CHANNEL_TOKEN_FILE: bridge.tokenFile,
    AWORLD_TRAIN_RUN: bridge.run,
    AWORLD_TRAIN_RUN_PATH: bridge.path,
    AWORLD_TRAIN_INCARNATION: bridge.incarnation,
  }
}

/** Variables that verl, Ray, torch, CUDA, engines and loggers read, and what a process needs to run at all. */
const names: ReadonlySet<string> = new Set([
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
  'AWORLD_TRAIN_SMOKE',
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
  'RAY_',
  'ROCM_',
  'ROCR_',
  'SGLANG_',
  'SGL_',
  'SWANLAB_',
  'TORCH',
  'TRANSFORMERS_',
  'UCX_',
  'VERL_',
  'VLLM_',
  'WANDB_',
]

/** Values of the bridge's variables, which override inherited ones. */
export interface BridgeVariables {
  readonly run: string
  readonly incarnation: string
  /** The run directory. */
  readonly path: string
  readonly channelUrl: string
  readonly tokenFile: string
  readonly metricsFile: string
  /** Folder of the bridge's Python package. */
  readonly bridgeDirectory: string
}

/**
 * The environment of verl's processes: of `inherited` only what they read, since keys of third parties are none of their
 * business; then `own`, which the user names; then those of the bridge. Folders of PYTHONPATH stand behind the bridge's.
 */
export function toVerlEnvironment(
  inherited: Readonly<Record<string, string | undefined>>,
  ownVariables: Readonly<Record<string, string>>,
  bridge: BridgeVariables,
): Record<string, string> {
  const environment: Record<string, string> = {}
  for (const [name, value] of Object.entries(inherited)) {
    if (value !== undefined && (names.has(name) || prefixes.some((prefix) => name.startsWith(prefix)))) environment[name] = value
  }
  Object.assign(environment, ownVariables)
  const pythonPath = [bridge.bridgeDirectory, environment['PYTHONPATH']].filter((each) => each !== undefined && each !== '')
  const modules = ['aworld_train_bridge.verl.plugin', ...(environment['VERL_USE_EXTERNAL_MODULES'] ?? '').split(',')].filter(Boolean)
  return {
    ...environment,
    PYTHONPATH: pythonPath.join(':'),
    PYTHONUNBUFFERED: '1',
    HYDRA_FULL_ERROR: '1',
    // Names of Ray's processes would be written over their environment, by which they are found.
    SPT_NOENV: '1',
    RAY_USAGE_STATS_ENABLED: environment['RAY_USAGE_STATS_ENABLED'] ?? '0',
    VERL_USE_EXTERNAL_MODULES: [...new Set(modules)].join(','),
    VERL_FILE_LOGGER_PATH: bridge.metricsFile,
    AWORLD_TRAIN_CHANNEL: bridge.channelUrl,
    AWORLD_TRAIN_CHANNEL_TOKEN_FILE: bridge.tokenFile,
    AWORLD_TRAIN_RUN: bridge.run,
    AWORLD_TRAIN_RUN_PATH: bridge.path,
    AWORLD_TRAIN_INCARNATION: bridge.incarnation,
  }
}

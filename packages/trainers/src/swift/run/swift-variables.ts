/**
 * With USE_HF, names of models are looked up in the user's cache of Hugging Face. Without it, each is requested from ModelScope over the
 * network.
 */
export const swiftVariables = { USE_HF: '1', TRL_EXPERIMENTAL_SILENCE: '1', TOKENIZERS_PARALLELISM: 'false' } as const

/**
 * The only GPU that ms-swift sees, as `CUDA_VISIBLE_DEVICES` names it, because one process would spread the model over all. Empty for none.
 */
export const firstGpu = (env: Readonly<Record<string, string | undefined>>): string =>
  (env['CUDA_VISIBLE_DEVICES'] ?? '0').split(',')[0]!.trim()

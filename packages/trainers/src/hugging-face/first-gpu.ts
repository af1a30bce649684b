/**
 * The only GPU that the framework sees, as `CUDA_VISIBLE_DEVICES` names it, because transformers would spread one process over all. Empty
 * for none.
 */
export const firstGpu = (env: Readonly<Record<string, string | undefined>>): string =>
  (env['CUDA_VISIBLE_DEVICES'] ?? '0').split(',')[0]!.trim()

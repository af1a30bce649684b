import { isRecord, TrainError } from '@aworld-train/core'
import type { InFlightMode, ServerKind } from '../fleet/server-kind.ts'

export interface VllmKindOptions {
  /**
   * Worker method that loads a folder: `sync_from_dir` (default) of the extension in `python/aworld_train_vllm.py`, or vLLM's own
   * `reload_weights`. The latter serves wrong logprobs on CPU if embeddings are tied, and kills the engine everywhere if the folder is
   * missing.
   */
  readonly loadMethod?: 'sync_from_dir' | 'reload_weights' | undefined
}

/** vLLM answers 404 to its control routes if it was started without VLLM_SERVER_DEV_MODE=1. */
const isMissing = ({ status }: { readonly status: number }): boolean => status === 404 || status === 405

const modes: Readonly<Record<InFlightMode, string>> = { drain: 'wait', keep: 'keep', abort: 'abort' }

/** Routes of vLLM 0.32 (entrypoints/rl/online, serve/dev, serve/lora). */
export function vllmKind({ loadMethod = 'sync_from_dir' }: VllmKindOptions = {}): ServerKind {
  return {
    name: 'vllm',
    healthPath: '/health',
    async identify(admin, signal) {
      const { status, json } = await admin.call('/weight_info', { method: 'GET', timeoutMs: 5000, signal })
      const weights = status === 200 && isRecord(json) && typeof json['weight_version'] === 'string' ? json['weight_version'] : null
      // A restarted server has lost the version that it was given. Until it gets one, only its start time shows the restart.
      if (weights !== null && /^\d+$/.test(weights)) return { weights, boot: null }
      const metrics = await admin.call('/metrics', { method: 'GET', timeoutMs: 5000, signal })
      return { weights, boot: /^process_start_time_seconds (\S+)$/m.exec(metrics.text)?.[1] ?? null }
    },
    async pause(admin, mode, signal) {
      const answer = await admin.call(`/pause?mode=${modes[mode]}`, { attempts: 3, timeoutMs: 600_000, signal })
      // Without the route, the calls of this fleet are drained all the same, but calls of other clients cannot be held back.
      if (isMissing(answer) && mode === 'drain') return
      if (answer.status !== 200) throw refused(admin.server, 'pause', answer.status, answer.text)
    },
    async resume(admin, signal) {
      const answer = await admin.call('/resume', { attempts: 5, timeoutMs: 30_000, signal })
      if (answer.status !== 200 && !isMissing(answer)) throw refused(admin.server, 'resume', answer.status, answer.text)
    },
    async loadWeights(admin, { directory, label }, signal) {
      const body =
        loadMethod === 'reload_weights'
          ? { method: loadMethod, kwargs: { weights_path: directory } }
          : { method: loadMethod, args: [directory] }
      const { json } = await admin.expect('/collective_rpc', { body, timeoutMs: 600_000, signal }).catch((cause: unknown) => {
        if (!(cause instanceof TrainError) || !isMissing({ status: Number(cause.details?.['status']) })) throw cause
        const message = `${admin.server} has no route that loads weights; start it with VLLM_SERVER_DEV_MODE=1 and --worker-extension-cls aworld_train_vllm.WeightSync.`
        throw new TrainError('CONFIG_INVALID', message, { cause, details: cause.details ?? {} })
      })
      const results = isRecord(json) && Array.isArray(json['results']) ? json['results'] : []
      for (const result of results)
        if (isRecord(result) && typeof result['error'] === 'string') throw refused(admin.server, 'load the weights', 200, result['error'])
      await admin.expect('/update_weight_version', { body: { new_version: label }, attempts: 3, signal })
      // The cache blocks of kept calls stay. New calls do not use them, because the salt of the cache contains the version.
      await admin.call('/reset_prefix_cache', { body: {}, attempts: 3, signal })
    },
    async nameWeights(admin, label, signal) {
      const { status, text } = await admin.call('/update_weight_version', { body: { new_version: label }, attempts: 3, signal })
      // A server without the route cannot report a name either.
      if (status !== 200 && !isMissing({ status })) throw refused(admin.server, 'name its weights', status, text)
    },
    async loadAdapter(admin, { name, directory }, signal) {
      const body = { lora_name: name, lora_path: directory, load_inplace: true }
      await admin.expect('/v1/load_lora_adapter', { body, timeoutMs: 600_000, signal })
    },
  }
}

function refused(server: string, what: string, status: number, body: string): TrainError {
  return new TrainError('POLICY_UNAVAILABLE', `${server} could not ${what}: ${body.slice(0, 300)}; see its log.`, {
    details: { server, status },
  })
}

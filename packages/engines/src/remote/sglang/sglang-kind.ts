import { isRecord, TrainError } from '@aworld-train/core'
import type { InFlightMode, ServerKind } from '../fleet/server-kind.ts'
import type { Admin } from '../http/admin.ts'

/** SGLang's modes. Calls that are kept return to the queue, and their keys and values are computed again with the new weights. */
const modes: Readonly<Record<InFlightMode, string>> = { drain: 'retract', keep: 'retract', abort: 'abort' }

/** Calls a route that reports its outcome in `success`, with `message` or `error_message`. */
async function succeed(admin: Admin, path: string, body: unknown, signal: AbortSignal, attempts = 1): Promise<void> {
  const { json, status } = await admin.expect(path, { body, timeoutMs: 600_000, attempts, signal })
  if (!isRecord(json) || json['success'] !== false) return
  const serverMessage = json['error_message'] ?? json['message']
  throw new TrainError('POLICY_UNAVAILABLE', `${admin.server} refused ${path}: ${String(serverMessage).slice(0, 300)}; see its log.`, {
    details: { server: admin.server, path, status },
  })
}

/** Routes of SGLang 0.5 (entrypoints/http_server.py, managers/io_struct.py). */
export const sglangKind: ServerKind = {
  name: 'sglang',
  healthPath: '/health',
  async identify(admin, signal) {
    let answer = await admin.call('/model_info', { method: 'GET', timeoutMs: 5000, signal })
    if (answer.status === 404) answer = await admin.call('/get_model_info', { method: 'GET', timeoutMs: 5000, signal })
    const weights = isRecord(answer.json) ? answer.json['weight_version'] : null
    return { weights: typeof weights === 'string' ? weights : null, boot: null }
  },
  async pause(admin, mode, signal) {
    await admin.expect('/pause_generation', { body: { mode: modes[mode] }, attempts: 3, timeoutMs: 600_000, signal })
  },
  async resume(admin, signal) {
    await admin.expect('/continue_generation', { body: {}, attempts: 5, signal })
  },
  loadWeights: (admin, { directory, label }, signal) =>
    succeed(
      admin,
      '/update_weights_from_disk',
      { model_path: directory, weight_version: label, abort_all_requests: false, flush_cache: true },
      signal,
    ),
  // SGLang's default aborts all calls.
  nameWeights: (admin, label, signal) =>
    succeed(admin, '/update_weight_version', { new_version: label, abort_all_requests: false }, signal, 3),
  async loadAdapter(admin, { name, directory }, signal) {
    // SGLang refuses a name in use and cannot replace an adapter in place, so the old one is unloaded first.
    await admin.call('/unload_lora_adapter', { body: { lora_name: name }, signal })
    await succeed(admin, '/load_lora_adapter', { lora_name: name, lora_path: directory }, signal)
  },
}

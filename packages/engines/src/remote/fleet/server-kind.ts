import type { Admin } from '../http/admin.ts'

/** Treatment of calls in flight during an update: they end first, wait and continue with the new weights, or are cut off. */
export type InFlightMode = 'drain' | 'keep' | 'abort'

/** Identity of a server, as it reports it. */
export interface ServerIdentity {
  /** Its name for the weights that sample; `null` if no route reports it. */
  readonly weights: string | null
  /** A value that differs between two starts of the server; `null` if there is none. */
  readonly boot: string | null
}

/** How to control one kind of inference server. A new kind is another row. No other code depends on the kind's name. */
export interface ServerKind {
  readonly name: 'vllm' | 'sglang'
  readonly healthPath: string
  identify(admin: Admin, signal?: AbortSignal): Promise<ServerIdentity>
  pause(admin: Admin, mode: InFlightMode, signal: AbortSignal): Promise<void>
  resume(admin: Admin, signal: AbortSignal): Promise<void>
  /** Loads the weights of a folder that the server can read and names them. Rejects if the server reports a failure. */
  loadWeights(admin: Admin, weights: { readonly directory: string; readonly label: string }, signal: AbortSignal): Promise<void>
  /** Names the weights that the server has already. Calls in flight continue. */
  nameWeights(admin: Admin, label: string, signal: AbortSignal): Promise<void>
  /** Loads a LoRA adapter, replacing one of the same name. */
  loadAdapter(admin: Admin, adapter: { readonly name: string; readonly directory: string }, signal: AbortSignal): Promise<void>
}

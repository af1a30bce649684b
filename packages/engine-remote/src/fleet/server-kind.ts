import type { Admin } from '../http/admin.ts'

/** What happens to calls that are in flight when an update comes: they end first, wait and go on with the new weights, or are cut. */
export type InFlightMode = 'drain' | 'keep' | 'abort'

/** What a server says of itself. */
export interface ServerIdentity {
  /** Its name for the weights that sample, `null` where it has no route that tells. */
  readonly weights: string | null
  /** A value that differs between two starts of the server; `null` where there is none. */
  readonly boot: string | null
}

/** How to control one kind of inference server. A new kind is another row; no other code depends on the kind's name. */
export interface ServerKind {
  readonly name: 'vllm' | 'sglang'
  readonly healthPath: string
  identify(admin: Admin, signal?: AbortSignal): Promise<ServerIdentity>
  pause(admin: Admin, mode: InFlightMode, signal: AbortSignal): Promise<void>
  resume(admin: Admin, signal: AbortSignal): Promise<void>
  /** Loads the weights of a folder that the server can read and names them. Rejects where the server reports a failure. */
  loadWeights(admin: Admin, weights: { readonly directory: string; readonly label: string }, signal: AbortSignal): Promise<void>
  /** Names the weights that the server has already; calls in flight go on. */
  nameWeights(admin: Admin, label: string, signal: AbortSignal): Promise<void>
  /** Loads a LoRA adapter, in the place of one of that name. */
  loadAdapter(admin: Admin, adapter: { readonly name: string; readonly directory: string }, signal: AbortSignal): Promise<void>
}

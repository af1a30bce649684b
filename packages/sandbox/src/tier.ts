import type { Sandbox, SandboxTier } from '@aworld-train/core'

/** Whether this machine can run a tier; a reason says what is missing and what to do. */
export type TierProbe = { readonly ok: true } | { readonly ok: false; readonly reason: string }

export interface Tier {
  readonly name: SandboxTier
  probe(): Promise<TierProbe>
  /** `notices` stand before the sandbox's own. */
  open(notices: readonly string[]): Promise<Sandbox>
}

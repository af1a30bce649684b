import type { Sandbox, SandboxTier } from '@aworld-train/core'

/** Whether this machine can run a tier. A reason names what is missing and the remedy. */
export type TierProbe = { readonly ok: true } | { readonly ok: false; readonly reason: string }

export interface Tier {
  readonly name: SandboxTier
  probe(): Promise<TierProbe>
  /** Opens the tier. `notices` come before the sandbox's own. */
  open(notices: readonly string[]): Promise<Sandbox>
}

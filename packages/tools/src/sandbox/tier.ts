import type { Sandbox, SandboxTier } from '@aworld-train/core'

/** Whether this machine can run a tier. A reason names what is missing and the remedy. */
export type TierProbe = { readonly ok: true } | { readonly ok: false; readonly reason: string }

/** Folders of the machine, by their paths in a workspace. */
export type ReadableFolders = Readonly<Record<string, string>>

export interface Tier {
  readonly name: SandboxTier
  probe(): Promise<TierProbe>
  /** Opens the tier. `notices` come before the sandbox's own. Where no native program runs, nothing is mounted. */
  open(notices: readonly string[], readable: ReadableFolders): Promise<Sandbox>
}

import { type Sandbox, type SandboxTier, TrainError } from '@aworld-train/core'
import type { ReadableFolders } from './tier.ts'
import { tiers } from './tiers.ts'

export interface OpenSandboxOptions {
  /** `auto`, the default, takes the first tier that this machine can run. */
  readonly tier?: SandboxTier | 'auto' | undefined
  /** Folders of the machine that every workspace may read, by their paths there. Absent where its user cannot read them. */
  readonly readable?: ReadableFolders | undefined
}

/** Opens a sandbox of a tier. Rejects with SANDBOX_UNAVAILABLE for a tier that this machine cannot run; no weaker tier takes its place. */
export async function openSandbox({ tier: wanted = 'auto', readable = {} }: OpenSandboxOptions = {}): Promise<Sandbox> {
  const refusals: string[] = []
  for (const tier of tiers) {
    if (wanted !== 'auto' && wanted !== tier.name) continue
    const probe = await tier.probe()
    if (probe.ok) return tier.open(refusals, readable)
    refusals.push(`Commands do not run in the tier "${tier.name}": ${probe.reason}`)
  }
  throw new TrainError('SANDBOX_UNAVAILABLE', refusals.join(' ') || `There is no tier "${wanted}".`)
}

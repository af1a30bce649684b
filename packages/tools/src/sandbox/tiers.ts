import { openBubblewrapSandbox } from './bubblewrap/bubblewrap-sandbox.ts'
import { probeBubblewrap } from './bubblewrap/probe.ts'
import { openSimulatedSandbox } from './simulated/simulated-sandbox.ts'
import type { Tier } from './tier.ts'

/** All tiers, the preferred one first. */
export const tiers: readonly Tier[] = [
  { name: 'bubblewrap', probe: probeBubblewrap, open: openBubblewrapSandbox },
  { name: 'simulated', probe: async () => ({ ok: true }), open: openSimulatedSandbox },
]

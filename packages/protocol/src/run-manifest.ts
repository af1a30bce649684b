import { z } from 'zod'

/** What `manifest.json` says of a run: versions, hashes, provenance; never a secret. */
export const RunManifest = z.object({
  version: z.literal(2),
  /** An evaluation runs rollouts with weights as they are. */
  kind: z.enum(['training', 'evaluation']).default('training'),
  name: z.string(),
  /** Unix milliseconds. */
  createdAt: z.number(),
  /** Runs of equal hash are the same command: the newest unfinished one is resumed. */
  configurationHash: z.string(),
  status: z.enum(['running', 'finished']),
  /** Names to versions: packages, Node, engine. */
  versions: z.record(z.string(), z.string()),
  /** Where each setting came from, and hashes of the inputs. */
  provenance: z.record(z.string(), z.unknown()),
})
export type RunManifest = z.infer<typeof RunManifest>

import { z } from 'zod'

/** The `manifest.json` of a run: versions, hashes, provenance; never a secret. */
export const RunManifest = z.object({
  version: z.literal(3),
  /** An evaluation runs rollouts with unchanged weights. */
  kind: z.enum(['training', 'evaluation']).default('training'),
  name: z.string(),
  /** Unix milliseconds. */
  createdAt: z.number(),
  /** Runs of equal hash are runs of the same command. The newest unfinished one is resumed. */
  configurationHash: z.string(),
  status: z.enum(['running', 'finished']),
  /** Versions of packages, Node and engine, by name. */
  versions: z.record(z.string(), z.string()),
  /** Origin of each setting, and hashes of the inputs. */
  provenance: z.record(z.string(), z.unknown()),
})
export type RunManifest = z.infer<typeof RunManifest>

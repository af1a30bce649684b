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

const Sandboxes = z
  .array(
    z.object({
      desktopUrl: z
        .url({ protocol: /^https?$/ })
        .nullable()
        .catch(null),
    }),
  )
  .catch([])

/** The page that shows desktops of a run's rollouts while they run; `null` if they have none. */
export function desktopUrlOf({ provenance }: RunManifest): string | null {
  return Sandboxes.parse(provenance['sandboxes']).find(({ desktopUrl }) => desktopUrl !== null)?.desktopUrl ?? null
}

const EvaluationFacts = z.object({
  samplesPerTask: z.int().min(1),
  /** Column that names a task's kind; `null` takes the data source. */
  kindKey: z.string().nullable(),
  /** Whether what the calls of agents cost is known. */
  hasPrice: z.boolean(),
})

/** Facts that an evaluation notes before it starts; `null` for any other run. */
export const evaluationFactsOf = ({ provenance }: RunManifest): z.infer<typeof EvaluationFacts> | null =>
  EvaluationFacts.safeParse(provenance['evaluation']).data ?? null

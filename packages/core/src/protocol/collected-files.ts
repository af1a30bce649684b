import { z } from 'zod'

/** Most files, and their size together, that are collected of one rollout. */
export const collectLimits = { files: 64, bytes: 20 * 2 ** 20 } as const

/** A collected file with its content in base64. */
export const CollectedFile = z.strictObject({ path: z.string().min(1), executable: z.boolean(), content: z.string() })
export type CollectedFile = z.infer<typeof CollectedFile>

/** A collected file of an episode. Its content is in the run directory, as `files/` and its hash. */
export const EpisodeFile = z.strictObject({
  path: z.string().min(1),
  executable: z.boolean(),
  bytes: z.int().min(0),
  /** SHA-256 of the content, in hexadecimal digits. */
  sha256: z.string(),
})
export type EpisodeFile = z.infer<typeof EpisodeFile>

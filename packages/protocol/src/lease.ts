import { z } from 'zod'

/**
 * Bounds of a lease's workspace; the server's own where absent, and never more than the server grants. With the least of each, a command of
 * a pipeline still runs, and what it prints can be read.
 */
export const LeaseQuota = z.strictObject({
  memoryBytes: z
    .int()
    .min(64 * 2 ** 20)
    .optional(),
  diskBytes: z
    .int()
    .min(2 ** 20)
    .optional(),
  processes: z.int().min(16).optional(),
  cpuSeconds: z.int().min(1).optional(),
  outputBytes: z.int().min(1_024).optional(),
})
export type LeaseQuota = z.infer<typeof LeaseQuota>

/** Asks an environment server for the workspace of one attempt. The same rollout and attempt get the same lease. */
export const LeaseOpen = z.strictObject({
  version: z.literal(1),
  rollout: z.string().min(1).max(512).regex(/\S/),
  attempt: z.int().min(0),
  /** Id of the task. */
  task: z.string().min(1).max(512),
  sample: z.int().min(0),
  /** Tool servers that the attempt may use; all of them when absent. */
  servers: z.array(z.string().min(1).max(128)).min(1).max(64).optional(),
  quota: LeaseQuota.optional(),
})
export type LeaseOpen = z.infer<typeof LeaseOpen>

/** A command that sets a workspace up, run by its bash. */
export const LeaseCommand = z.strictObject({ command: z.string().min(1) })
export type LeaseCommand = z.infer<typeof LeaseCommand>

/** How to reach an open lease. Asking for it again answers with a new token. */
export const LeaseAnswer = z.strictObject({
  version: z.literal(1),
  id: z.string().min(1),
  /** Address of the MCP endpoint. */
  url: z.url(),
  /** Bearer of this lease alone. */
  token: z.string().min(1),
  tier: z.enum(['bubblewrap', 'simulated']),
  /** Why this tier, and which limits it does not hold. */
  notices: z.array(z.string()),
  /** When the token ends, in Unix milliseconds. A lease that nobody calls ends at the same time. */
  expiresAt: z.number(),
})
export type LeaseAnswer = z.infer<typeof LeaseAnswer>

/** What an environment server does at this moment. */
export const EnvironmentStatus = z.strictObject({
  version: z.literal(1),
  url: z.url(),
  tier: z.enum(['bubblewrap', 'simulated']),
  /** Why this tier, and which limits it does not hold. */
  notices: z.array(z.string()),
  /** `missing`: what has to be configured before the tools of a server can work, one sentence each. */
  servers: z.array(z.strictObject({ name: z.string(), tools: z.array(z.string()), missing: z.array(z.string()) })),
  leases: z.array(
    z.strictObject({
      id: z.string(),
      rollout: z.string(),
      attempt: z.int().min(0),
      task: z.string().nullable(),
      /** Unix milliseconds. */
      openedAt: z.number(),
      expiresAt: z.number(),
      /** Calls that run now. */
      running: z.int().min(0),
    }),
  ),
  /** Since the server started. */
  calls: z.strictObject({ total: z.int().min(0), errors: z.int().min(0) }),
})
export type EnvironmentStatus = z.infer<typeof EnvironmentStatus>

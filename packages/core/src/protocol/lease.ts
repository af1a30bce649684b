import { z } from 'zod'
import { CollectedFile } from './collected-files.ts'

/**
 * Bounds of a lease's workspace. Default: the server's own, which none may exceed. With the least of each, a command of a pipeline still
 * runs, and its output can be read.
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
  /** Tool servers that the attempt may use. Default: all. */
  servers: z.array(z.string().min(1).max(128)).min(1).max(64).optional(),
  quota: LeaseQuota.optional(),
  /** Whether it has a screen for graphical programs, such as its browser, which people can watch. Default: no. */
  desktop: z.boolean().optional(),
  /** Whether its commands reach the public web, through the guard, the limits and the recording of the server. Default: no. */
  net: z.boolean().optional(),
})
export type LeaseOpen = z.infer<typeof LeaseOpen>

/** A command that sets a workspace up, run by its bash. */
export const LeaseCommand = z.strictObject({ command: z.string().min(1) })
export type LeaseCommand = z.infer<typeof LeaseCommand>

/** Asks for the files of a workspace that fit one of the globs. */
export const LeaseCollect = z.strictObject({ version: z.literal(1), patterns: z.array(z.string().min(1).max(512)).min(1).max(64) })
export type LeaseCollect = z.infer<typeof LeaseCollect>

/** The files of a workspace that fit. */
export const LeaseFiles = z.strictObject({ version: z.literal(1), files: z.array(CollectedFile) })
export type LeaseFiles = z.infer<typeof LeaseFiles>

/** Access to an open lease. Another request for it is answered with a new token. */
export const LeaseAnswer = z.strictObject({
  version: z.literal(1),
  id: z.string().min(1),
  /** Address of the MCP endpoint. */
  url: z.url(),
  /** Bearer token of this lease alone. */
  token: z.string().min(1),
  tier: z.enum(['bubblewrap', 'simulated']),
  /** Sentences about why this tier was chosen, and which limits it does not enforce. */
  notices: z.array(z.string()),
  /** End of the token, in Unix milliseconds. A lease that nobody calls ends at the same time. */
  expiresAt: z.number(),
  /** Page that shows its desktop, if it has one. Beyond loopback the page also needs `token=`, the token of the lease. */
  desktopUrl: z.url().optional(),
})
export type LeaseAnswer = z.infer<typeof LeaseAnswer>

/** Asks for the workspace of another rollout with the files of this one, and with the folder and the variables of its shells. */
export const LeaseCopy = z.strictObject({ version: z.literal(1), rollout: LeaseOpen.shape.rollout, attempt: LeaseOpen.shape.attempt })
export type LeaseCopy = z.infer<typeof LeaseCopy>

/** Access to the copy. */
export const LeaseCopyAnswer = LeaseAnswer.extend({
  /** Sentences about what is not in the copy. */
  notCopied: z.array(z.string()),
})
export type LeaseCopyAnswer = z.infer<typeof LeaseCopyAnswer>

/** Current state of an environment server. */
export const EnvironmentStatus = z.strictObject({
  version: z.literal(1),
  url: z.url(),
  tier: z.enum(['bubblewrap', 'simulated']),
  /** Sentences about why this tier was chosen, and which limits it does not enforce. */
  notices: z.array(z.string()),
  /** `missing` has one sentence for each thing to configure before the tools of a server can work. */
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
      /** Calls under way. */
      running: z.int().min(0),
      /** Page that shows its desktop, if it has one. */
      desktopUrl: z.url().optional(),
    }),
  ),
  /** Counts since the server started. */
  calls: z.strictObject({ total: z.int().min(0), errors: z.int().min(0) }),
  /**
   * Counts since the server started of what programs and browsers of leases asked of the web: requests that were passed on or answered from
   * a recording, what the proxy refused, and WebSockets, which are among the refused.
   */
  net: z.strictObject({ requests: z.int().min(0), refused: z.int().min(0), webSockets: z.int().min(0) }),
})
export type EnvironmentStatus = z.infer<typeof EnvironmentStatus>

/** Key of a tool result's `_meta` whose value is the lease's desktop after the call, as a ToolImage. Models do not see `_meta`. */
export const desktopFrameKey = 'aworld-train/desktop'

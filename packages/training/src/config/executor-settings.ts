import { z } from 'zod'

/** Where agents run. Model calls, rewards and records stay with the process that has this configuration, the coordinator. */
export const ExecutorSettings = z.strictObject({
  /** `local` runs them on this machine: in this process, or in child processes with `workerNum` or `reuseProcess: false`. `external` waits for workers that somebody else starts with `aworld-train worker`. */
  engineName: z.enum(['local', 'external']).default('local'),
  /** Child processes that `local` starts; with `reuseProcess: false` one where this is not set. */
  workerNum: z.int().min(1).nullable().default(null),
  /** Whether agents may run in the process of the coordinator. */
  reuseProcess: z.boolean().default(true),
  /** Attempts that one child process runs at once. */
  slots: z.int().min(1).default(16),
  /** How long the attempts of a lost worker are kept for it before they begin anew elsewhere. */
  graceMs: z
    .int()
    .min(0)
    .max(2 ** 31 - 1)
    .default(15_000),
})
export type ExecutorSettings = z.infer<typeof ExecutorSettings>

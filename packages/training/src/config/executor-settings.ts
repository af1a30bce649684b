import { z } from 'zod'
import { Secret } from './secret.ts'

const port = z.int().min(0).max(65_535)

/** Where agents run. Model calls, rewards and records stay with the process that has this configuration, the coordinator. */
export const ExecutorSettings = z.strictObject({
  /** Who starts the workers that run agents: `local` runs them on this machine, in this process, or in child processes with `workerNum`; `ray`, `spark` and `k8s` ask a cluster; `external` waits for workers that somebody else starts with `aworld-train worker`. */
  engineName: z.string().min(1).default('local'),
  /** A launcher of your own in place of `engineName`: a module and the name of a function in it that takes a WorkerLaunch and returns a Launcher, such as `./launcher.ts#createLauncher`. */
  cls: z.string().min(1).nullable().default(null),
  /** Where the engine is reached, such as the URL of a cluster; `null` for its own default. */
  address: z.string().min(1).nullable().default(null),
  /** Workers that are started; one where this is not set. With `local` they are child processes, and where this is not set agents run in this process. */
  workerNum: z.int().min(1).nullable().default(null),
  /** Attempts that one worker runs at once. */
  slots: z.int().min(1).default(16),
  /** What each worker needs of its machine, in the engine's own words. */
  resources: z.record(z.string().min(1), z.json()).default({}),
  /** Variables that each worker gets beside those of its machine. */
  env: z.record(z.string().regex(/^[^=\0]+$/, 'must be the name of a variable'), z.string()).default({}),
  /** What the engine alone understands; its guide lists them. */
  options: z.record(z.string().min(1), z.json()).default({}),
  /** One rollout after another, in order. */
  sequenceDependent: z.boolean().default(false),
  /** What workers connect with, which opens nothing else; `null` takes a random one. A training needs it for `external` workers; a server prints a random one. */
  token: Secret.nullable().default(null),
  /** Port that the workers of a training connect to, on the host of its gateway; 0 takes any free one. A server has that of its rollouts. */
  port: port.default(0),
  /** Workers that a rollout may lose while it has them for itself and no other worker is lost: with the last of them it fails. It has a worker for itself once it was lost with several. */
  maxLosses: z.int().min(1).default(3),
  /** How long the attempts of a lost worker are kept for it before they begin anew elsewhere. */
  graceMs: z
    .int()
    .min(0)
    .max(2 ** 31 - 1)
    .default(15_000),
})
export type ExecutorSettings = z.infer<typeof ExecutorSettings>

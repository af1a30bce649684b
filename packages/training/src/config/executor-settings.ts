import { z } from 'zod'
import { longestMs, Port } from './listener.ts'
import { Secret } from './secret.ts'

/** The place where agents run. Model calls, rewards and records stay with the coordinator, the process that has this configuration. */
export const ExecutorSettings = z.strictObject({
  engineName: z
    .string()
    .min(1)
    .default('local')
    .describe(
      'What starts the workers that run agents: `local` runs agents in this process, or in child processes with `workerNum`; `ray`, `spark` and `k8s` ask a cluster; `external` waits for workers that you start with `aworld-train worker`.',
    ),
  cls: z
    .string()
    .min(1)
    .nullable()
    .default(null)
    .describe(
      'Launcher of your own in place of `engineName`: a module and a function in it that takes a `WorkerLaunch` and returns a `Launcher`, such as `./launcher.ts#createLauncher`.',
    ),
  address: z
    .string()
    .min(1)
    .nullable()
    .default(null)
    .describe("Address of the cluster, such as its URL. `null` takes the engine's own default."),
  workerNum: z
    .int()
    .min(1)
    .nullable()
    .default(null)
    .describe('Workers that are started. With `null` a cluster gets one, and `local` runs agents in this process.'),
  slots: z.int().min(1).default(16).describe('Rollouts that one worker runs at once. `concurrency` bounds those of all workers together.'),
  resources: z
    .record(z.string().min(1), z.json())
    .default({})
    .describe("What each worker needs of its machine, in the engine's own words. The guide of each engine lists them."),
  env: z
    .record(z.string().regex(/^[^=\0]+$/, 'must be the name of a variable'), z.string())
    .default({})
    .describe('Environment variables that each worker gets beside those of its machine.'),
  options: z
    .record(z.string().min(1), z.json())
    .default({})
    .describe('What the engine alone understands. The guide of each engine lists it.'),
  sequenceDependent: z.boolean().default(false).describe('`true` runs one rollout after another, in order.'),
  token: Secret.nullable()
    .default(null)
    .describe(
      'Token that workers connect with; it opens nothing else. `null` takes a random one, which a server prints. A training needs it for `external` workers.',
    ),
  port: Port.default(0).describe(
    'Port that the workers of a training connect to, on the host of its gateway. 0 takes any free one. The workers of a server connect to the port of `rollouts`.',
  ),
  maxLosses: z
    .int()
    .min(1)
    .default(3)
    .describe(
      'Workers that a rollout may lose while it is alone on them. It fails with `WORKER_LOST` at the last of them. A rollout gets a worker for itself after it was lost together with others.',
    ),
  graceMs: z
    .int()
    .min(0)
    .max(longestMs)
    .default(15_000)
    .describe('Time that a lost worker has to come back, in milliseconds. Its rollouts then begin again on another worker.'),
})
export type ExecutorSettings = z.infer<typeof ExecutorSettings>

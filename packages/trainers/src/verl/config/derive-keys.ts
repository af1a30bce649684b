import { join } from 'node:path'
import type { PlanInputs } from '@aworld-train/core'
import { type KeyTree, valueAt } from '@aworld-train/training'
import type { Derivation, DerivationContext } from './derivation.ts'
import { deriveBatch, deriveFailures, deriveMicroBatches, deriveSampling } from './derive-batch.ts'
import { deriveAbsolutePaths, deriveAgent, deriveFiles, deriveReward } from './derive-inputs.ts'
import { layoutKeys } from './layout-keys.ts'
import { clusterAddress, isOwnRayKey } from './own-ray.ts'
import { resolveKey } from './resolve-key.ts'
import type { VerlConfig } from './verl-config.ts'
import { exportedVariables, workerEnvironment, workerVariables } from './worker-variables.ts'

/** The rules in their order. Later ones read the values that earlier ones set. */
const rules: readonly ((context: DerivationContext) => void)[] = [
  layout,
  deriveAbsolutePaths,
  deriveFiles,
  deriveAgent,
  deriveReward,
  deriveBatch,
  deriveMicroBatches,
  deriveSampling,
  deriveFailures,
  output,
  ends,
]

export interface DeriveOptions {
  /** The keys that a run on CPU needs, each with its reason; none for any other run. */
  readonly smoke: ReadonlyMap<string, { value: unknown; why: string }>
  readonly environment: Readonly<Record<string, string>>
  readonly defaults: KeyTree
}

/**
 * Fills keys that the user left out and sets those that AWorld Train owns, each with its reason. The user's keys come first. `defaults` is
 * verl's own tree, resolved.
 */
export function deriveKeys(config: VerlConfig, run: PlanInputs, { smoke, environment, defaults }: DeriveOptions): Derivation {
  const keys = new Map(config.keys)
  const notes: string[] = []
  const problems: string[] = []
  const set = (path: string, value: unknown, why: string) => {
    keys.delete(path)
    keys.set(path, { path, value, origin: 'derived', why })
  }
  const context: DerivationContext = {
    keys,
    notes,
    problems,
    config,
    run,
    environment,
    value: (path) => (keys.has(path) ? resolveKey({ keys }, path) : valueAt(defaults, path)),
    isSet: (path) => keys.has(path),
    fill: (path, value, why) => {
      if (!keys.has(path)) set(path, value, why)
    },
    override: (path, value, why) => {
      const theirs = keys.get(path)
      if (theirs && JSON.stringify(theirs.value) !== JSON.stringify(value))
        notes.push(`${path} is ${JSON.stringify(value)} in place of ${JSON.stringify(theirs.value)} (${theirs.why}): ${why}.`)
      set(path, value, why)
    },
  }
  for (const rule of rules) rule(context)
  for (const [path, { value, why }] of smoke) {
    // If verl scores, it does so in a reward worker.
    if (path !== 'reward.num_workers' || !config.settings.reward.native) context.fill(path, value, `on CPU: ${why}`)
  }
  workers(context)
  cluster(context)
  return context
}

function layout({ config, fill, problems, keys, notes }: DerivationContext): void {
  if (config.settings.layout === null) return
  const rendered = layoutKeys(config.settings.layout)
  problems.push(...rendered.problems)
  for (const [path, value, why] of rendered.keys) {
    const theirs = keys.get(path)
    if (theirs && theirs.value !== value)
      notes.push(`${path} stays ${JSON.stringify(theirs.value)} (${theirs.why}) against ${JSON.stringify(value)} of layout.`)
    fill(path, value, why)
  }
}

function output({ run, fill, keys }: DerivationContext): void {
  const logger = keys.get('trainer.logger')?.value
  const loggers = [logger ?? 'console'].flat().filter((each): each is string => typeof each === 'string')
  if (!loggers.includes('file') || !Array.isArray(logger)) {
    keys.delete('trainer.logger')
    keys.set('trainer.logger', {
      path: 'trainer.logger',
      value: [...new Set([...loggers, 'file'])],
      origin: 'derived',
      why:
        logger === undefined
          ? 'progress is read from the file'
          : `${JSON.stringify(logger)} of the user, and the file that progress is read from`,
    })
  }
  fill('trainer.project_name', 'aworld-train', 'the project')
  fill('trainer.experiment_name', run.name, 'the run')
  fill('trainer.default_local_dir', join(run.path, 'checkpoints'), 'the run directory')
}

/** Makes a run end like that of the engine in the box, with a model and a result on the test data. */
function ends({ run, fill, value, isSet, notes }: DerivationContext): void {
  const prompts = Number(value('data.train_batch_size'))
  const total = value('trainer.total_training_steps')
  const byEpochs = run.train ? Math.floor(run.train.rows / prompts) * Number(value('trainer.total_epochs')) : Number.POSITIVE_INFINITY
  const steps = typeof total === 'number' ? Math.min(total, byEpochs) : byEpochs
  if (!Number.isFinite(steps) || steps < 1) return
  if (!isSet('trainer.save_freq') && steps > 20)
    notes.push(
      'trainer.save_freq is not set: only the last step leaves a checkpoint, and a run that ends before starts over. Set it to the steps between two, such as 20.',
    )
  fill('trainer.save_freq', steps, 'the last step is kept')
  if (run.test) fill('trainer.test_freq', steps, 'the last step is validated')
}

function workers({ keys, override, environment }: DerivationContext): void {
  const why = 'Ray gives it to the workers of every node'
  const put = (name: string, value: string) => {
    const path = `${workerEnvironment}.${name}`
    // A script that an earlier launch wrote contains the variables of that launch.
    keys.delete(path)
    override(path, value, why)
  }
  for (const name of exportedVariables(environment)) put(name, environment[name]!)
  for (const name of workerVariables) put(name, `\${oc.env:${name}}`)
}

/** Leaves the resources of a cluster to the cluster. */
function cluster({ keys, notes, value }: DerivationContext): void {
  const address = clusterAddress(value('ray_kwargs.ray_init.address'))
  if (address === null) return
  for (const { path, value, origin, why } of [...keys.values()].filter(({ path }) => isOwnRayKey(path))) {
    if (origin === 'user')
      notes.push(
        `${path} is left out: ${JSON.stringify(value)} (${why}) is of a Ray of one's own, and verl joins the cluster at ${address}.`,
      )
    keys.delete(path)
  }
}

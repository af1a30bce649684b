import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { RunReport, TrainError } from '@aworld-train/core'
import { policiesIn } from '@aworld-train/training'
import type { LocalPlan } from '../local/plan.ts'
import { pythonTrainers } from '../python-trainers.ts'

/** Weights that can be sampled here: of a model folder, or of a checkpoint that is loaded into the model of its run or configuration. */
export interface FoundWeights {
  readonly model?: string
  readonly checkpoint?: string
  /** Whether a Tinker service has them. */
  readonly atTinker: boolean
}

/**
 * The weights of a model folder, of a checkpoint, or of the last checkpoint of a run. They are here, or at a Tinker service that a pointer
 * names. Throws MODULE_INVALID if a folder has none.
 */
export function findWeights(folder: string): FoundWeights {
  const weights = weightsIn(folder)
  if (weights) return weights
  const checkpoints = join(folder, 'checkpoints')
  const names = existsSync(checkpoints) ? readdirSync(checkpoints) : []
  for (const name of names.sort((a, b) => stepOf(b) - stepOf(a))) {
    const found = weightsIn(join(checkpoints, name))
    if (found) return found
  }
  const trainer = pythonTrainers.find((each) => each.checkpoints.resumable(checkpoints) > 0)
  const message = trainer
    ? `${folder} is a run with ${trainer.name}, whose checkpoints are its own; write a model first: aworld-train export ${folder} --what model --to model`
    : `${folder} holds neither a model (config.json) nor checkpoints; name a model folder or a run.`
  throw new TrainError('MODULE_INVALID', message)
}

function weightsIn(folder: string): FoundWeights | null {
  if (existsSync(join(folder, 'config.json'))) return { model: folder, atTinker: false }
  // A run may have the model that a warm-up made, in a folder of its own.
  const isRun = existsSync(join(folder, 'manifest.json'))
  const hasPolicies = (file: 'config.json' | 'tinker.json') => !isRun && policiesIn(folder, file).length > 0
  if (existsSync(join(folder, 'tinker.json')) || hasPolicies('tinker.json')) return { checkpoint: folder, atTinker: true }
  return hasPolicies('config.json') ? { checkpoint: folder, atTinker: false } : null
}

const stepOf = (name: string) => Number(/\d+/.exec(name)?.[0] ?? -1)

/**
 * The model of each policy. A checkpoint of several is loaded into the models that its run began with, of which some are not trained. Throws
 * CONFIG_INVALID if a warm-up has yet to make one.
 */
export function modelsOf({ policies }: Pick<LocalPlan, 'policies'>, checkpoint: string | undefined): string[] {
  const run = checkpoint === undefined ? null : runOf(resolve(checkpoint))
  const { data } = RunReport.safeParse(run && readJson(join(run, 'report.json')))
  const models = policies.map(({ name, model }) => {
    if (checkpoint === undefined || name === null) return model
    const found = [data?.policies?.[name]?.model, model, run && join(run, 'models', name)]
    return found.find((folder) => folder != null && existsSync(folder)) ?? null
  })
  if (models.every((model) => model !== null)) return models
  const keys = policies.flatMap(({ name }, index) => (models[index] === null ? [name === null ? 'model' : `policies.${name}`] : []))
  throw new TrainError(
    'CONFIG_INVALID',
    `There is no model yet: the warm-up makes it when you train. Train first, then name the run with --model, or set ${keys.map((key) => `${key}.path`).join(' and ')}.`,
  )
}

/** The run that a folder is in, or `null`: the nearest folder with a manifest. The name of a checkpoint may have slashes. */
function runOf(folder: string): string | null {
  if (existsSync(join(folder, 'manifest.json'))) return folder
  const parent = dirname(folder)
  return parent === folder ? null : runOf(parent)
}

function readJson(path: string): unknown {
  return existsSync(path) ? JSON.parse(readFileSync(path, 'utf8')) : null
}

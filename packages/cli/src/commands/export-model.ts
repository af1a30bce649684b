import { existsSync } from 'node:fs'
import { cp, mkdir } from 'node:fs/promises'
import { basename, dirname, join, relative } from 'node:path'
import { TrainError } from '@aworld-train/core'
import { checkpointStateFiles } from '@aworld-train/engines/local'
import { readRun } from '@aworld-train/store'
import { type TrainerRunState, trainerStateKey } from '@aworld-train/trainers/shared'
import { policiesIn } from '@aworld-train/training'
import { pythonTrainers } from 'aworld-train'
import { unknownPolicy } from './unknown-policy.ts'
import { writeTarget } from './write-target.ts'

export interface ExportModelRequest {
  /** Run directory. */
  readonly run: string
  /** Folder to write. */
  readonly target: string
  readonly step: number | undefined
  /** The one of several policies. */
  readonly policy: string | undefined
  readonly dtype: 'keep' | 'bfloat16'
  readonly signal: AbortSignal
}

/**
 * Writes a trained model of a run as a Hugging Face folder. A framework writes its own models; those of the engine in the box are copied.
 */
export async function exportModel({ run, target, step, policy, dtype, signal }: ExportModelRequest): Promise<void> {
  const { framework, checkpoint, pointer } = readCheckpoint(run, step, policy)
  await writeTarget(target, () => mkdir(dirname(target), { recursive: true }))
  let exported: number
  if (framework) {
    const { checkpoints, model } = framework.state
    const python = process.env['AWORLD_TRAIN_PYTHON'] ?? framework.state.python
    const onLine = (line: string) => void process.stderr.write(`${line}\n`)
    exported = (
      await framework.trainer.checkpoints.exportModel({
        python,
        checkpoints,
        step,
        target,
        dtype,
        signal,
        onLine,
        ...(existsSync(join(model, 'config.json')) && { model }),
      })
    ).step
  } else {
    if (checkpoint === null && pointer !== null) {
      const message = `The weights of ${run} are at the Tinker service, and no model is here; download them from where ${pointer} points.`
      throw new TrainError('CONFIG_INVALID', message)
    }
    if (checkpoint === null) {
      const which = step === undefined ? 'no checkpoint' : `no checkpoint of step ${step}`
      throw new TrainError('CHECKPOINT_CORRUPT', `${run} has ${which}; let the run reach one, or correct --step.`)
    }
    if (existsSync(target)) throw new TrainError('CONFIG_INVALID', `${target} is there; name another folder.`)
    await writeTarget(target, () => cp(join(run, checkpoint.path), target, { recursive: true, filter: isOfModel }))
    exported = checkpoint.step
  }
  process.stdout.write(`the model after step ${exported} written to ${relative(process.cwd(), target) || '.'}\n`)
}

/** Throws CONFIG_INVALID unless `policy` names one of several policies, or there are none. */
function requirePolicy(run: string, policy: string | undefined, policies: readonly string[]): void {
  const names = policies.map((name) => `"${name}"`).join(', ')
  if (policies.length > 0 && policy === undefined)
    throw new TrainError('CONFIG_INVALID', `${run} has the policies ${names}; name the one to write with --policy.`)
  if (policies.length > 0 && !policies.includes(policy!)) {
    throw unknownPolicy(`checkpoint of ${run}`, policy!, policies, ' A policy that is not trained stays what it was.')
  }
  if (policies.length === 0 && policy !== undefined)
    throw new TrainError('CONFIG_INVALID', `No checkpoint of ${run} has several policies; leave out --policy.`)
}

/** Files that resume a training stay with the run. */
const isOfModel = (path: string) => !checkpointStateFiles.includes(basename(path))

function readCheckpoint(run: string, step: number | undefined, policy: string | undefined) {
  const reader = readRun(run)
  try {
    const [framework] = pythonTrainers.flatMap((trainer) => {
      const state = reader.getState(trainerStateKey(trainer.name)) as TrainerRunState | undefined
      return state ? [{ trainer, state }] : []
    })
    const saved = reader.steps().filter(({ checkpoint }) => checkpoint !== null)
    const inCheckpoint = (checkpoint: string | null, file: 'config.json' | 'tinker.json') => policiesIn(join(run, checkpoint!), file)
    const policies = framework
      ? []
      : saved.flatMap(({ checkpoint }) => [...inCheckpoint(checkpoint, 'config.json'), ...inCheckpoint(checkpoint, 'tinker.json')])
    requirePolicy(run, policy, [...new Set(policies)])
    const newestWith = (file: string) => {
      const within = (checkpoint: string) => join(checkpoint, policy ?? '')
      const steps = saved
        .filter(({ checkpoint }) => existsSync(join(run, within(checkpoint as string), file)))
        .map((each) => ({ ...each, checkpoint: within(each.checkpoint as string) }))
      const chosen = step === undefined ? steps.at(-1) : steps.find((each) => each.step === step)
      return chosen ? { step: chosen.step, path: chosen.checkpoint } : null
    }
    const pointed = newestWith('tinker.json')
    return { framework, checkpoint: newestWith('config.json'), pointer: pointed && join(run, pointed.path, 'tinker.json') }
  } finally {
    reader.close()
  }
}

import { existsSync, readdirSync } from 'node:fs'
import { mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { type Learner, type RunProgress, type TrainError, toTrainError } from '@aworld-train/core'

export interface Checkpoints {
  /**
   * Loads the newest readable checkpoint at or before `step` and resolves to its step; `null` if there is none. Rejects with
   * CHECKPOINT_CORRUPT if none can be read, and with any other error of the learner as it is.
   */
  restore(step: number): Promise<number | null>
  /** Resolves to the path inside the run. */
  save(step: number): Promise<string>
  /** Keeps this step as the best so far, in place of `previous`. */
  saveBest(step: number, previous: string | null): Promise<string>
  /** Checkpoints of steps, oldest first. */
  keptPaths(): string[]
}

/** What of the checkpoints of a run is on disk, by steps; `isBest` is the one that the validation chose. */
export function listCheckpoints(run: string): { readonly step: number; readonly isBest: boolean; readonly path: string }[] {
  const folder = join(run, 'checkpoints')
  const names = existsSync(folder) ? readdirSync(folder) : []
  return names
    .flatMap((name) => {
      const [, best, step] = /^(best-)?step-(\d+)$/.exec(name) ?? []
      return step === undefined ? [] : [{ step: Number(step), isBest: best !== undefined, path: join(folder, name) }]
    })
    .sort((a, b) => a.step - b.step)
}

/** The checkpoints of a run, one folder a step; step 0 holds the weights that it started from. */
export function createCheckpoints({
  learner,
  store,
  warn,
}: {
  readonly learner: Pick<Learner, 'save' | 'load'>
  readonly store: Pick<RunProgress, 'path'>
  readonly warn: (code: string, message: string) => void
}): Checkpoints {
  const folder = join(store.path, 'checkpoints')

  async function write(name: string): Promise<string> {
    await mkdir(folder, { recursive: true })
    const path = join(folder, name)
    // A process that died between saving and committing has left it.
    await rm(path, { recursive: true, force: true })
    await learner.save(path)
    return `checkpoints/${name}`
  }

  /** Removes folders that a killed process was still writing. A finished one never begins with a dot. */
  async function removeUnfinished(): Promise<void> {
    const names = existsSync(folder) ? readdirSync(folder) : []
    for (const name of names) if (name.startsWith('.')) await rm(join(folder, name), { recursive: true, force: true })
  }

  const steps = () => listCheckpoints(store.path).flatMap(({ step, isBest }) => (isBest ? [] : [step]))

  return {
    async restore(step) {
      await removeUnfinished()
      const candidates = steps().filter((each) => each <= step)
      if (candidates.length === 0) return null
      let failure: TrainError | undefined
      for (const candidate of candidates.reverse()) {
        try {
          await learner.load(join(folder, stepName(candidate)))
          return candidate
        } catch (error) {
          failure = toTrainError(error, 'CHECKPOINT_CORRUPT')
          // Any other error is not the checkpoint's fault, and an older checkpoint would only lose steps.
          if (failure.code !== 'CHECKPOINT_CORRUPT') throw failure
          warn(
            'CHECKPOINT_CORRUPT',
            `Checkpoint ${join(folder, stepName(candidate))} cannot be read (${failure.message}); using the one before it.`,
          )
        }
      }
      throw failure
    },
    save: (step) => write(stepName(step)),
    async saveBest(step, previous) {
      const path = await write(`best-step-${step}`)
      if (previous !== null && previous !== path) await rm(join(store.path, previous), { recursive: true, force: true })
      return path
    },
    keptPaths: () => steps().map((step) => `checkpoints/${stepName(step)}`),
  }
}

const stepName = (step: number) => `step-${String(step).padStart(6, '0')}`

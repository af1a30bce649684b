import { type Reward, type RewardInput, type RewardOutput, TrainError, unknownModel } from '@aworld-train/core'
import { choosePythonFunction } from './choose-python-function.ts'
import { rewardTimeout } from './inline-reward.ts'
import { described, type PythonAnswer, type PythonFunction, type PythonProcess, startPython } from './python-process.ts'
import { type CallEnd, createRewardCalls } from './reward-calls.ts'
import type { RewardReference } from './reward-module.ts'
import { type RewardInputKind, solutionText } from './solution-text.ts'
import { toWorkerInput } from './worker-input.ts'

export interface PythonRewardOptions {
  readonly reference: RewardReference
  readonly timeoutMs: number
  readonly memoryMb: number
  /** Most calls at once; `null`: 8, and 32 of an asynchronous function. */
  readonly concurrency: number | null
  readonly rewardInput: RewardInputKind
  /** The interpreter; by default AWORLD_TRAIN_PYTHON, else `python3`. */
  readonly python?: string | undefined
}

/** Most calls at once unless the options say, in threads of the process and in its event loop. */
const mostThreads = 8
const mostAsync = 32

/**
 * A function of a Python file, in a process of its own. Throws REWARD_TIMEOUT for a call over its deadline, REWARD_FAILED for one that
 * raises or ends its process, REWARD_INVALID for a result that is no score, and MODULE_INVALID if the file names no reward.
 */
export async function createPythonReward(options: PythonRewardOptions): Promise<Reward> {
  const { reference, timeoutMs, memoryMb, concurrency, rewardInput } = options
  const first = await startChosen(options)
  const { name } = first.chosen
  const limit = concurrency ?? (first.chosen.async ? mostAsync : mostThreads)
  const place = `"${name}" of ${reference.path}`
  const start = async () => (await startChosen(options)).process
  const calls = createRewardCalls({ start, first: first.process, limit, timeoutMs })
  let closed = false

  function toOutcome(end: CallEnd<PythonAnswer>, input: RewardInput, models: readonly string[]): RewardOutput | TrainError {
    const failed = (why: string, cause?: unknown) =>
      new TrainError('REWARD_FAILED', `Reward ${place} failed on task "${input.task.id}": ${why.replace(/\.$/, '')}.`, { cause })
    switch (end.kind) {
      case 'value':
        return { reward: end.reward, scores: end.scores, ...(end.agents && { agents: end.agents }) }
      case 'invalid':
        return new TrainError(
          'REWARD_INVALID',
          `Reward ${place} returned ${end.description}; return a finite number, or a dict with a number under "score", and one for each agent under "agents".`,
        )
      case 'timeout':
      case 'unresponsive':
        return rewardTimeout(name, timeoutMs)
      case 'threw':
        if (end.unknownModel !== undefined) return unknownModel(end.unknownModel, models)
        return end.outOfMemory
          ? failed(`it used more than ${memoryMb} MB beside what its imports take; raise reward.memoryMb`, end.stack)
          : failed(described(end), end.stack)
      case 'died':
        return new TrainError(
          'REWARD_PROCESS_DIED',
          `The process of reward ${place} ended on task "${input.task.id}": ${end.why.replace(/\.$/, '')}.`,
        )
      case 'cancelled':
        return failed('it was cancelled')
      case 'closed':
        return failed('it was closed before it answered')
    }
  }

  return {
    name,
    async score(input, { signal, endpoints }) {
      signal.throwIfAborted()
      if (closed) throw new TrainError('REWARD_FAILED', `Reward ${place} is closed.`)
      const values = toArguments(input, rewardInput)
      const outcome = await calls.call({
        values: { arguments: values, endpoints },
        signal,
        toOutcome: (end) => toOutcome(end, input, Object.keys(endpoints)),
      })
      if (outcome instanceof TrainError) throw outcome
      return outcome
    },
    async close() {
      closed = true
      await calls.close()
    },
  }
}

/** Starts Python with the file, and chooses the function. */
async function startChosen({
  reference,
  python,
  memoryMb,
  concurrency,
}: PythonRewardOptions): Promise<{ readonly process: PythonProcess; readonly chosen: PythonFunction }> {
  const process = await startPython(reference.path, python)
  try {
    const chosen = choosePythonFunction(process.functions, reference)
    const { name, keywords: byKeyword, asksModels } = chosen
    process.use({ use: name, byKeyword, asksModels, threads: concurrency ?? mostThreads, memoryMb })
    return { process, chosen }
  } catch (error) {
    await process.close()
    throw error
  }
}

/** The four values in verl's order, the same that a positional function of TypeScript gets. */
function toArguments(input: RewardInput, rewardInput: RewardInputKind): readonly unknown[] {
  const { task, episode, answer } = toWorkerInput(input, false)
  return [task.dataSource, solutionText(episode, rewardInput), answer.groundTruth ?? null, task.extraInfo]
}

import { type Reward, type RewardInput, type RewardOutput, TrainError } from '@aworld-train/core'
import { choosePythonFunction } from './choose-python-function.ts'
import { rewardTimeout } from './inline-reward.ts'
import { createPythonCalls, type PythonEnd, type StartedFunction } from './python-calls.ts'
import { described, startPython } from './python-process.ts'
import type { RewardReference } from './reward-module.ts'
import { type RewardInputKind, solutionText } from './solution-text.ts'
import { toWorkerInput } from './worker-input.ts'

export interface PythonRewardOptions {
  readonly reference: RewardReference
  readonly timeoutMs: number
  readonly memoryMb: number
  readonly rewardInput: RewardInputKind
  /** The interpreter; by default AWORLD_TRAIN_PYTHON, else `python3`. */
  readonly python?: string | undefined
}

/**
 * A function of a Python file, in a process of its own. Throws REWARD_TIMEOUT for a call over its deadline, REWARD_FAILED for one that
 * raises or ends its process, REWARD_INVALID for a result that is no score, and MODULE_INVALID if the file names no reward.
 */
export async function createPythonReward(options: PythonRewardOptions): Promise<Reward> {
  const { reference, timeoutMs, memoryMb, rewardInput } = options
  const first = await startChosen(options)
  const { name } = first.chosen
  const place = `"${name}" of ${reference.path}`
  const calls = createPythonCalls({ start: () => startChosen(options), first, timeoutMs, memoryMb })
  let closed = false

  function toOutcome(end: PythonEnd, input: RewardInput): RewardOutput | TrainError {
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
    async score(input, signal) {
      signal.throwIfAborted()
      if (closed) throw new TrainError('REWARD_FAILED', `Reward ${place} is closed.`)
      const values = toArguments(input, rewardInput)
      const outcome = await calls.call({ arguments: values, signal, toOutcome: (end) => toOutcome(end, input) })
      if (outcome instanceof TrainError) throw outcome
      return outcome
    },
    async close() {
      closed = true
      await calls.close()
    },
  }
}

async function startChosen({ reference, python }: PythonRewardOptions): Promise<StartedFunction> {
  const process = await startPython(reference.path, python)
  try {
    return { process, chosen: choosePythonFunction(process.functions, reference) }
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

import { pathToFileURL } from 'node:url'
import { parentPort, workerData } from 'node:worker_threads'
import {
  type CommandResult,
  type ErrorCode,
  type GroupInput,
  orAborted,
  type RewardInput,
  type RewardKind,
  type ScoringContext,
  scoringContext,
  TrainError,
  type VerifyRequest,
} from '@aworld-train/core'
import { type ChosenExport, chooseExport } from './choose-export.ts'
import { isDefinedGroupReward } from './define-group-reward.ts'
import { isDefinedReward } from './define-reward.ts'
import { refuseEpisode } from './inline-reward.ts'
import { describe } from './reward-value.ts'
import { type RewardInputKind, solutionText } from './solution-text.ts'

/** Start data of the worker. */
export interface RewardWorkerData {
  readonly path: string
  readonly exportName: string | null
  readonly rewardInput: RewardInputKind
}

export interface RewardWorkerCall {
  readonly id: number
  /** An episode, or the episodes of a group. */
  readonly input: RewardInput | GroupInput
  readonly endpoints: ScoringContext['endpoints']
  readonly timeoutMs: number
}

/** The result of a call, by its id. */
export type RewardWorkerAnswer = { readonly id: number } & (
  | { readonly kind: 'value'; readonly value: unknown }
  | { readonly kind: 'unsendable'; readonly description: string }
  | {
      readonly kind: 'threw'
      readonly message: string
      readonly stack: string | undefined
      /** The error, if it is of the catalogue. */
      readonly error: { readonly code: ErrorCode; readonly details: TrainError['details'] } | undefined
    }
  | { readonly kind: 'timeout' }
  | { readonly kind: 'cancelled' }
)

/** The end of a verification, by the number that the worker gave it. */
export interface RewardWorkerVerdict {
  readonly verification: number
  readonly result: CommandResult | { readonly error: string }
}

export type RewardWorkerReply =
  | { readonly kind: 'ready'; readonly name: string; readonly rich: boolean; readonly rewardKind: RewardKind }
  | { readonly kind: 'invalid-module'; readonly message: string }
  | { readonly kind: 'verify'; readonly id: number; readonly verification: number; readonly request: VerifyRequest }
  | RewardWorkerAnswer

const port = parentPort!
const { path, exportName, rewardInput } = workerData as RewardWorkerData
const reply = (message: RewardWorkerReply) => port.postMessage(message)

// No top-level await: V8 ends the whole process where a thread is terminated while its modules are still evaluated
// (nodejs/node issues 53238, 62114).
void serve()

async function serve(): Promise<void> {
  try {
    const chosen = chooseExport((await import(pathToFileURL(path).href)) as Record<string, unknown>, path, exportName)
    // `null` asks the thread to end.
    port.on('message', (message: RewardWorkerCall | RewardWorkerVerdict | { readonly cancel: number } | null) => {
      if (message === null) port.close()
      else if ('verification' in message) settle(message)
      else if ('cancel' in message) running.get(message.cancel)?.abort('cancelled')
      else void answer(chosen, message)
    })
    const { name, value } = chosen
    reply({ kind: 'ready', name, rich: isDefinedReward(value), rewardKind: isDefinedGroupReward(value) ? value.kind : 'episode' })
  } catch (error) {
    reply({ kind: 'invalid-module', message: error instanceof Error ? error.message : describe(error) })
  }
}

/** What ends each call that is under way, with `timeout` or `cancelled`. */
const running = new Map<number, AbortController>()

async function answer({ value }: ChosenExport, { id, input, endpoints, timeoutMs }: RewardWorkerCall): Promise<void> {
  const over = new AbortController()
  running.set(id, over)
  const startedAt = performance.now()
  const timer = setTimeout(() => over.abort('timeout'), timeoutMs)
  const context = scoringContext(over.signal, endpoints)
  try {
    const settled = await orAborted(Promise.resolve(call(value, id, input, context)), over.signal)
    // A call that blocked the thread has kept its timer from ending it.
    if (performance.now() - startedAt > timeoutMs) over.abort('timeout')
    over.signal.throwIfAborted()
    send(id, settled)
  } catch (error) {
    if (over.signal.aborted) return reply({ kind: over.signal.reason as 'timeout' | 'cancelled', id })
    const { message, stack } = error instanceof Error ? error : { message: describe(error), stack: undefined }
    const ours = error instanceof TrainError ? { code: error.code, details: error.details } : undefined
    reply({ kind: 'threw', id, message, stack, error: ours })
  } finally {
    clearTimeout(timer)
    running.delete(id)
    over.abort('ended')
  }
}

function call(value: ChosenExport['value'], id: number, input: RewardInput | GroupInput, context: ScoringContext): unknown {
  if ('episodes' in input) return isDefinedGroupReward(value) ? value.score(input, context) : refuseEpisode()
  if (isDefinedGroupReward(value)) return refuseEpisode()
  if (isDefinedReward(value)) return value.score({ ...input, verify: (request) => verify(id, request) }, context)
  const { task, episode, answer } = input
  return value(task.dataSource, solutionText(episode, rewardInput), answer.groundTruth, task.extraInfo, context)
}

let nextVerification = 0
const verifications = new Map<number, ReturnType<typeof Promise.withResolvers<CommandResult>>>()

/** Has the thread that started this one verify files. */
function verify(id: number, request: VerifyRequest): Promise<CommandResult> {
  const verification = nextVerification++
  const pending = Promise.withResolvers<CommandResult>()
  verifications.set(verification, pending)
  reply({ kind: 'verify', id, verification, request })
  return pending.promise
}

function settle({ verification, result }: RewardWorkerVerdict): void {
  const pending = verifications.get(verification)
  verifications.delete(verification)
  if ('error' in result) pending?.reject(new Error(result.error))
  else pending?.resolve(result)
}

/** Sends a number or a small object as it is, and anything else as a description, so that its size is bounded. */
function send(id: number, value: unknown): void {
  if (!isSmall(value)) {
    reply({ kind: 'unsendable', id, description: describe(value) })
    return
  }
  try {
    reply({ kind: 'value', id, value })
  } catch {
    reply({ kind: 'unsendable', id, description: describe(value) })
  }
}

function isSmall(value: unknown): boolean {
  if (Array.isArray(value)) return value.length <= 10_000 && value.every((each) => typeof each === 'number' || each === null)
  if (typeof value === 'number' || typeof value === 'boolean' || value === null || value === undefined) return true
  if (typeof value !== 'object' || !('reward' in value) || Object.keys(value).length > 3) return false
  const { scores, agents } = value as { readonly scores?: unknown; readonly agents?: unknown }
  return [scores, agents].every(
    (record) => record === undefined || (typeof record === 'object' && record !== null && Object.keys(record).length <= 1000),
  )
}

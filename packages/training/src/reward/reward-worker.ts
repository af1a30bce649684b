import { pathToFileURL } from 'node:url'
import { parentPort, workerData } from 'node:worker_threads'
import type { CommandResult, RewardInput, VerifyRequest } from '@aworld-train/core'
import { chooseExport } from './choose-export.ts'
import { isDefinedReward } from './define-reward.ts'
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
  readonly input: RewardInput
}

/** The end of a verification, by the number that the worker gave it. */
export interface RewardWorkerVerdict {
  readonly verification: number
  readonly result: CommandResult | { readonly error: string }
}

export type RewardWorkerReply =
  | { readonly kind: 'ready'; readonly name: string; readonly rich: boolean }
  | { readonly kind: 'invalid-module'; readonly message: string }
  | { readonly kind: 'verify'; readonly verification: number; readonly request: VerifyRequest }
  | { readonly kind: 'value'; readonly id: number; readonly value: unknown }
  | { readonly kind: 'unsendable'; readonly id: number; readonly description: string }
  | { readonly kind: 'threw'; readonly id: number; readonly message: string; readonly stack: string | undefined }

const port = parentPort!
const { path, exportName, rewardInput } = workerData as RewardWorkerData
const reply = (message: RewardWorkerReply) => port.postMessage(message)

// No top-level await: V8 ends the whole process where a thread is terminated while its modules are still evaluated
// (nodejs/node issues 53238, 62114).
void serve()

async function serve(): Promise<void> {
  try {
    const { name, value } = chooseExport((await import(pathToFileURL(path).href)) as Record<string, unknown>, path, exportName)
    const rich = isDefinedReward(value)
    // `null` asks the thread to end.
    port.on('message', async (call: RewardWorkerCall | RewardWorkerVerdict | null) => {
      if (call === null) return port.close()
      if ('verification' in call) return settle(call)
      const { id, input } = call
      try {
        const result = rich
          ? await value.score({ ...input, verify })
          : await value(input.task.dataSource, solutionText(input.episode, rewardInput), input.answer.groundTruth, input.task.extraInfo)
        send(id, result)
      } catch (error) {
        const { message, stack } = error instanceof Error ? error : { message: describe(error), stack: undefined }
        reply({ kind: 'threw', id, message, stack })
      }
    })
    reply({ kind: 'ready', name, rich })
  } catch (error) {
    reply({ kind: 'invalid-module', message: error instanceof Error ? error.message : describe(error) })
  }
}

let nextVerification = 0
const verifications = new Map<number, ReturnType<typeof Promise.withResolvers<CommandResult>>>()

/** Has the thread that started this one verify files. */
function verify(request: VerifyRequest): Promise<CommandResult> {
  const verification = nextVerification++
  const pending = Promise.withResolvers<CommandResult>()
  verifications.set(verification, pending)
  reply({ kind: 'verify', verification, request })
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
  if (typeof value === 'number' || typeof value === 'boolean' || value === null || value === undefined) return true
  if (typeof value !== 'object' || !('reward' in value) || Object.keys(value).length > 3) return false
  const { scores, agents } = value as { readonly scores?: unknown; readonly agents?: unknown }
  return [scores, agents].every(
    (record) => record === undefined || (typeof record === 'object' && record !== null && Object.keys(record).length <= 1000),
  )
}

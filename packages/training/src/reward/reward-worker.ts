import { pathToFileURL } from 'node:url'
import { parentPort, workerData } from 'node:worker_threads'
import type { RewardInput } from '@aworld-train/core'
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

/** `null` asks the thread to end. */
export interface RewardWorkerCall {
  readonly id: number
  readonly input: RewardInput
}

export type RewardWorkerReply =
  | { readonly kind: 'ready'; readonly name: string; readonly rich: boolean }
  | { readonly kind: 'invalid-module'; readonly message: string }
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
    port.on('message', async (call: RewardWorkerCall | null) => {
      if (call === null) return port.close()
      const { id, input } = call
      try {
        const result = rich
          ? await value.score(input)
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

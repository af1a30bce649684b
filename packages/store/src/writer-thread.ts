import { parentPort, workerData } from 'node:worker_threads'
import { TrainError } from '@aworld-train/core'
import { createLocalWriter, type RunWriter } from './local-writer.ts'
import { openRunDatabaseAgain } from './run-database.ts'
import type { ThreadCall, ThreadOptions, ThreadReply } from './thread-messages.ts'

if (!parentPort) throw new Error('This module is a worker thread; start it through startThreadWriter.')
const parent = parentPort
const { path, batchMs } = workerData as ThreadOptions
const database = openRunDatabaseAgain(path)
let opened: Promise<RunWriter> | null = null
let replies: ThreadReply[] = []

function open(): Promise<RunWriter> {
  opened ??= createLocalWriter({ path, database, batchMs })
  return opened
}

async function close(): Promise<void> {
  await (await open()).close()
  database.close()
}

async function run({ method, args }: ThreadCall): Promise<unknown> {
  if (method === 'open') return void (await open())
  if (method === 'close') return close()
  const { writes } = await open()
  return await (writes[method] as (...args: readonly unknown[]) => Promise<unknown>)(...args)
}

function answer(reply: ThreadReply): void {
  if (replies.length === 0) setImmediate(post)
  replies.push(reply)
}

function post(): void {
  parent.postMessage(replies)
  replies = []
}

parent.on('message', (calls: readonly ThreadCall[]) => {
  for (const call of calls) {
    const { id } = call
    run(call).then(
      (value) => answer({ id, value }),
      (cause: unknown) => {
        const error = cause instanceof Error ? cause : new Error(String(cause))
        const trainError = error instanceof TrainError ? error : null
        answer({
          id,
          error: { code: trainError?.code ?? null, message: error.message, ...(trainError?.details && { details: trainError.details }) },
        })
      },
    )
  }
})

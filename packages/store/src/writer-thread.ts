import { type MessagePort, parentPort, workerData } from 'node:worker_threads'
import type { StepRecord } from '@aworld-train/core'
import { type RolloutRequest, TrainError, type Turn } from '@aworld-train/protocol'
import type { EncodedEpisode } from './encode-episode.ts'
import { createLocalWriter, type LocalWriter } from './local-writer.ts'
import { openRunDatabaseAgain } from './run-database.ts'
import { serveTurnPort } from './serve-turn-port.ts'
import { toStoreError } from './store-error.ts'
import type { ThreadCall, ThreadMethod, ThreadOptions, ThreadReply } from './writer-protocol.ts'

if (!parentPort) throw new Error('This module is a worker thread; start it through startThreadWriter.')
const parent = parentPort
const { path, batchMs } = workerData as ThreadOptions
const database = openRunDatabaseAgain(path)
let writer: LocalWriter | null = null
const ports = new Set<MessagePort>()

async function open(): Promise<LocalWriter> {
  writer ??= await createLocalWriter({ path, database, batchMs })
  return writer
}

async function finish(episode: EncodedEpisode, given: readonly (readonly [string, Turn])[] | null): Promise<EncodedEpisode['turns']> {
  const { writes } = await open()
  const missing = given === null ? writes.missing(episode) : []
  if (missing.length === 0) await writes.finishEncoded(episode, given ?? [])
  return missing
}

async function close(): Promise<void> {
  for (const port of ports) port.close()
  await writer?.close()
  database.close()
}

const methods: Readonly<Record<ThreadMethod, (...args: never[]) => Promise<unknown>>> = {
  open: async () => void (await open()),
  begin: async (request: RolloutRequest) => (await open()).writes.begin(request),
  appendTurn: async (rollout: string, attempt: number, agent: string, turn: Turn) =>
    (await open()).writes.appendTurn(rollout, attempt, agent, turn),
  finish,
  commitStep: async (step: StepRecord) => (await open()).writes.commitStep(step),
  setState: async (key: string, value: unknown) => (await open()).writes.setState(key, value),
  async serve(port: MessagePort) {
    const { writes } = await open()
    ports.add(port)
    port.once('close', () => ports.delete(port))
    serveTurnPort(port, writes.appendLogged, (error) => toStoreError(error, path))
  },
  close,
}

parent.on('message', ({ id, method, args }: ThreadCall) => {
  const answer = (reply: ThreadReply) => parent.postMessage(reply)
  methods[method](...(args as never[])).then(
    (value) => answer({ id, value }),
    (cause: unknown) => {
      const error = cause instanceof Error ? cause : new Error(String(cause))
      const known = error instanceof TrainError ? error : null
      answer({ id, error: { code: known?.code ?? null, message: error.message, ...(known?.details && { details: known.details }) } })
    },
  )
})

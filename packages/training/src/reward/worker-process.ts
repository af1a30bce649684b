import { Worker } from 'node:worker_threads'
import {
  errorMessage,
  type GroupInput,
  type RewardInput,
  type RewardKind,
  type ScoringContext,
  siblingModule,
  TrainError,
  withDeadline,
} from '@aworld-train/core'
import type { CallListener, CallProcess } from './reward-calls.ts'
import type { RewardReference } from './reward-module.ts'
import type { RewardWorkerAnswer, RewardWorkerCall, RewardWorkerData, RewardWorkerReply, RewardWorkerVerdict } from './reward-worker.ts'
import type { RewardInputKind } from './solution-text.ts'
import type { Verification } from './verification.ts'
import { toGroupInput, toWorkerInput } from './worker-input.ts'

export interface WorkerProcessOptions {
  readonly reference: RewardReference
  readonly memoryMb: number
  readonly rewardInput: RewardInputKind
  readonly verification: Verification
}

export interface WorkerValues {
  readonly input: RewardInput | GroupInput
  readonly endpoints: ScoringContext['endpoints']
}

/** A worker thread that has loaded the user's module. Its owner closes it. */
export interface WorkerProcess extends CallProcess<WorkerValues, RewardWorkerAnswer> {
  readonly name: string
  readonly kind: RewardKind
}

const startTimeoutMs = 30_000
const memoryCheckMs = 20
/** Calls that end sooner, which are nearly all, are not measured. */
const memoryCheckAfterMs = 100
const endMs = 1_000

/** Starts a worker and loads the module in it. Throws MODULE_INVALID if it names no reward. */
export async function startWorker({ reference, rewardInput, memoryMb, verification }: WorkerProcessOptions): Promise<WorkerProcess> {
  const workerData: RewardWorkerData = { ...reference, rewardInput }
  const thread = new Worker(siblingModule('reward-worker', import.meta.url), {
    workerData,
    name: 'aworld-train-reward',
    resourceLimits: { maxOldGenerationSizeMb: memoryMb },
    stdin: false,
  })
  const { name, rich, rewardKind } = await untilReady(thread, reference)
  const running = new Map<number, { readonly input: WorkerValues['input']; readonly over: AbortController }>()
  let listener: CallListener<RewardWorkerAnswer> | null = null
  let watch: NodeJS.Timeout | undefined

  const tooMuch = () => listener?.onExit(`it used more than ${memoryMb} MB`, 'memory')
  // Resource limits bound the heap, and buffers are outside it. A worker that has just ended has no statistics.
  const look = () =>
    thread.getHeapStatistics().then(
      ({ external_memory }) => external_memory > memoryMb * 2 ** 20 && tooMuch(),
      () => {},
    )
  const end = (id: number) => {
    running.get(id)?.over.abort()
    running.delete(id)
    if (running.size === 0) clearTimeout(watch)
  }

  function verify({ id, verification: number, request }: Extract<RewardWorkerReply, { kind: 'verify' }>): void {
    const call = running.get(id)
    if (!call) return
    const { input, over } = call
    verification
      .verify(request, input as RewardInput, over.signal)
      .catch((error: unknown) => ({ error: errorMessage(error) }))
      .then((result) => over.signal.aborted || thread.postMessage({ verification: number, result } satisfies RewardWorkerVerdict))
  }

  thread.on('message', (reply: RewardWorkerReply) => {
    if (reply.kind === 'verify') return verify(reply)
    if (reply.kind === 'ready' || reply.kind === 'invalid-module') return
    end(reply.id)
    listener?.onAnswer(reply)
  })
  // The first of these says why; the second finds the process given up.
  thread.on('error', (error: Error & { code?: string }) =>
    error.code === 'ERR_WORKER_OUT_OF_MEMORY' ? tooMuch() : listener?.onExit(error.message, 'uncaught'),
  )
  thread.on('exit', (code) => listener?.onExit(`it ended with code ${code}`))

  return {
    name: reference.exportName ?? name,
    kind: rewardKind,
    listen(to) {
      listener = to
    },
    call({ id, values: { input, endpoints }, timeoutMs }) {
      if (running.size === 0)
        watch = setTimeout(() => {
          watch = setInterval(look, memoryCheckMs)
        }, memoryCheckAfterMs)
      running.set(id, { input, over: new AbortController() })
      thread.postMessage({
        id,
        input: 'episodes' in input ? toGroupInput(input) : toWorkerInput(input, rich),
        endpoints,
        timeoutMs,
      } satisfies RewardWorkerCall)
    },
    cancel: (id) => thread.postMessage({ cancel: id }),
    async close() {
      const isWorking = running.size > 0
      for (const id of running.keys()) end(id)
      await (isWorking ? thread.terminate() : endWorker(thread))
    },
  }
}

async function untilReady(thread: Worker, { path }: RewardReference): Promise<Extract<RewardWorkerReply, { readonly kind: 'ready' }>> {
  const { promise, resolve, reject } = Promise.withResolvers<RewardWorkerReply>()
  const invalid = (why: string, cause?: unknown) =>
    new TrainError('MODULE_INVALID', `The reward module ${path} cannot be loaded: ${why}.`, { cause })
  thread.once('message', resolve)
  thread.once('error', (error) => reject(invalid(error.message, error)))
  thread.once('exit', (code) => reject(invalid(`its worker ended with code ${code}`)))
  try {
    const reply = await withDeadline(promise, startTimeoutMs, () => invalid(`it did not load within ${startTimeoutMs} ms`))
    if (reply.kind !== 'ready') {
      const message = reply.kind === 'invalid-module' ? reply.message : `The reward module ${path} did not start.`
      throw new TrainError('MODULE_INVALID', message)
    }
    thread.removeAllListeners('error').removeAllListeners('exit')
    thread.unref()
    return reply
  } catch (error) {
    thread.on('error', () => {})
    await thread.terminate()
    throw error
  }
}

/** Ends a worker. A thread that waits for calls ends by itself; one that user code keeps alive is terminated. */
async function endWorker(thread: Worker): Promise<void> {
  if (thread.threadId === -1) return
  const { promise, resolve } = Promise.withResolvers<void>()
  thread.once('exit', () => resolve())
  thread.ref()
  thread.postMessage(null)
  const timer = setTimeout(resolve, endMs)
  await promise
  clearTimeout(timer)
  await thread.terminate()
}

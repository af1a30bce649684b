import { Worker } from 'node:worker_threads'
import { errorMessage, type Reward, type RewardInput, type RewardOutput, siblingModule, TrainError, withDeadline } from '@aworld-train/core'
import { rewardTimeout } from './inline-reward.ts'
import type { RewardReference } from './reward-module.ts'
import { toRewardOutput } from './reward-value.ts'
import type { RewardWorkerCall, RewardWorkerData, RewardWorkerReply, RewardWorkerVerdict } from './reward-worker.ts'
import type { RewardInputKind } from './solution-text.ts'
import type { Verification } from './verification.ts'
import { toWorkerInput } from './worker-input.ts'

export interface WorkerRewardOptions {
  readonly reference: RewardReference
  readonly timeoutMs: number
  readonly memoryMb: number
  readonly rewardInput: RewardInputKind
  readonly verification: Verification
}

interface Pending {
  readonly id: number
  readonly input: RewardInput
  readonly resolve: (output: RewardOutput) => void
  readonly reject: (error: unknown) => void
  readonly signal: AbortSignal
}

const startTimeoutMs = 30_000
const memoryCheckMs = 20
/** Calls that end sooner, which are nearly all, are not measured. */
const memoryCheckAfterMs = 100
const endMs = 1_000

/**
 * A reward in a worker thread of its own, one call at a time. A call over its time or memory ends the worker (REWARD_TIMEOUT,
 * REWARD_FAILED), and the next call gets a new one. Throws MODULE_INVALID if the module names no reward.
 */
export async function createWorkerReward(options: WorkerRewardOptions): Promise<Reward> {
  const { reference, timeoutMs } = options
  const queue: Pending[] = []
  let worker: StartedWorker | null = await startWorker(options)
  const { name, rich } = worker
  let running: Promise<void> | null = null
  let closed = false
  let nextId = 0

  async function run(): Promise<void> {
    for (let call = queue.shift(); call; call = queue.shift()) {
      if (call.signal.aborted) {
        call.reject(call.signal.reason)
        continue
      }
      try {
        worker ??= await startWorker(options)
        call.resolve(await scoreIn(worker, call))
      } catch (error) {
        call.reject(error)
      }
    }
    running = null
  }

  async function scoreIn({ thread }: StartedWorker, { id, input, signal }: Pending): Promise<RewardOutput> {
    const { promise, resolve, reject } = Promise.withResolvers<RewardWorkerReply>()
    const tooMuch = (cause?: unknown) => failed(input, `it used more than ${options.memoryMb} MB`, cause)
    // Resource limits bound the heap, and buffers are outside it. A worker that has just ended has no statistics.
    const look = () =>
      thread.getHeapStatistics().then(
        ({ external_memory }) => external_memory > options.memoryMb * 2 ** 20 && reject(tooMuch()),
        () => {},
      )
    let watch = setTimeout(() => {
      watch = setInterval(look, memoryCheckMs)
    }, memoryCheckAfterMs)
    const onAbort = () => reject(signal.reason)
    const onExit = (code: number) => {
      const message = `The worker of reward "${name}" ended with code ${code} on task "${input.task.id}".`
      reject(new TrainError('REWARD_PROCESS_DIED', message))
    }
    const onError = (error: Error & { code?: string }) =>
      reject(error.code === 'ERR_WORKER_OUT_OF_MEMORY' ? tooMuch(error) : failed(input, error.message, error))
    signal.addEventListener('abort', onAbort, { once: true })
    const over = new AbortController()
    const onReply = (reply: RewardWorkerReply) => {
      if (reply.kind !== 'verify') return resolve(reply)
      options.verification
        .verify(reply.request, input, over.signal)
        .catch((error: unknown) => ({ error: errorMessage(error) }))
        .then(
          (result) => over.signal.aborted || thread.postMessage({ verification: reply.verification, result } satisfies RewardWorkerVerdict),
        )
    }
    thread.on('message', onReply).on('error', onError).on('exit', onExit)
    let answered = false
    try {
      thread.postMessage({ id, input: toWorkerInput(input, rich) } satisfies RewardWorkerCall)
      const reply = await withDeadline(promise, timeoutMs, () => rewardTimeout(name, timeoutMs))
      answered = true
      return toOutput(reply, input)
    } finally {
      clearTimeout(watch)
      signal.removeEventListener('abort', onAbort)
      over.abort()
      thread.off('message', onReply).off('error', onError).off('exit', onExit)
      if (!answered) {
        worker = null
        await terminate(thread)
      }
    }
  }

  function toOutput(reply: RewardWorkerReply, input: RewardInput): RewardOutput {
    if (reply.kind === 'value') return toRewardOutput(reply.value, name)
    if (reply.kind === 'threw') throw failed(input, reply.message, reply.stack)
    const what = reply.kind === 'unsendable' ? reply.description : reply.kind
    throw new TrainError('REWARD_INVALID', `Reward "${name}" returned ${what}; return a finite number, or { reward, scores, agents }.`)
  }

  function failed(input: RewardInput, why: string, cause?: unknown): TrainError {
    return new TrainError('REWARD_FAILED', `Reward "${name}" failed on task "${input.task.id}": ${why.replace(/\.$/, '')}.`, { cause })
  }

  return {
    name,
    score(input, signal) {
      if (closed) return Promise.reject(new TrainError('REWARD_FAILED', `Reward "${name}" of ${reference.path} is closed.`))
      return new Promise((resolve, reject) => {
        queue.push({ id: nextId++, input, resolve, reject, signal })
        running ??= run()
      })
    },
    async close() {
      closed = true
      for (const call of queue.splice(0))
        call.reject(new TrainError('REWARD_FAILED', `Reward "${name}" was closed before it scored task "${call.input.task.id}".`))
      const thread = worker?.thread
      worker = null
      if (thread) await (running ? terminate(thread) : endWorker(thread))
      await running
      await options.verification.close()
    },
  }
}

interface StartedWorker {
  readonly thread: Worker
  readonly name: string
  readonly rich: boolean
}

async function startWorker({ reference, rewardInput, memoryMb }: WorkerRewardOptions): Promise<StartedWorker> {
  const workerData: RewardWorkerData = { ...reference, rewardInput }
  const thread = new Worker(siblingModule('reward-worker', import.meta.url), {
    workerData,
    name: 'aworld-train-reward',
    resourceLimits: { maxOldGenerationSizeMb: memoryMb },
    stdin: false,
  })
  const { promise, resolve, reject } = Promise.withResolvers<RewardWorkerReply>()
  const invalid = (why: string, cause?: unknown) =>
    new TrainError('MODULE_INVALID', `The reward module ${reference.path} cannot be loaded: ${why}.`, { cause })
  thread.once('message', resolve)
  thread.once('error', (error) => reject(invalid(error.message, error)))
  thread.once('exit', (code) => reject(invalid(`its worker ended with code ${code}`)))
  try {
    const reply = await withDeadline(promise, startTimeoutMs, () => invalid(`it did not load within ${startTimeoutMs} ms`))
    if (reply.kind === 'ready') {
      thread.removeAllListeners('error').removeAllListeners('exit')
      // Between calls a failure shows only in the next call, which finds the worker gone.
      thread.on('error', () => {})
      thread.unref()
      return { thread, name: reference.exportName ?? reply.name, rich: reply.rich }
    }
    throw new TrainError(
      'MODULE_INVALID',
      reply.kind === 'invalid-module' ? reply.message : `The reward module ${reference.path} did not start.`,
    )
  } catch (error) {
    await terminate(thread)
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
  await terminate(thread)
}

async function terminate(thread: Worker): Promise<void> {
  thread.on('error', () => {})
  await thread.terminate()
}

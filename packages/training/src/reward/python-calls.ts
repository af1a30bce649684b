import type { PythonAnswer, PythonFunction, PythonProcess } from './python-process.ts'

/** A call of a function in Python, from when it is queued until it is settled. */
export interface PythonCallInput<Outcome> {
  readonly arguments: readonly unknown[]
  readonly signal: AbortSignal
  readonly toOutcome: (end: PythonEnd) => Outcome
}

/** How a call ended: with an answer, over its deadline in a process that no longer answers, or with its process. */
export type PythonEnd =
  | PythonAnswer
  | { readonly kind: 'unresponsive' }
  | { readonly kind: 'died'; readonly why: string }
  | { readonly kind: 'closed' }

export interface PythonCallsOptions {
  /** Starts a process whose function is chosen and ready. If it rejects, every queued call ends with that error. */
  readonly start: () => Promise<StartedFunction>
  readonly first: StartedFunction
  readonly timeoutMs: number
  readonly memoryMb: number
}

export interface StartedFunction {
  readonly process: PythonProcess
  readonly chosen: PythonFunction
}

export interface PythonCalls {
  /** Rejects with the signal's reason, or with the error of starting a process. */
  call<Outcome>(input: PythonCallInput<Outcome>): Promise<Outcome>
  /** Ends every call that is queued or running as `closed`. */
  close(): Promise<void>
}

interface Call {
  readonly id: number
  readonly input: PythonCallInput<unknown>
  readonly end: (end: PythonEnd) => void
  readonly fail: (error: unknown) => void
  /** Whether it was running when a process died and therefore runs alone. */
  alone: boolean
}

/** One process and the calls that run in it. */
interface Lane {
  readonly process: PythonProcess
  readonly running: Map<number, { readonly call: Call; readonly timer: NodeJS.Timeout }>
}

/** Most calls at once, in threads of the process and in its event loop. */
const threads = 8
const asyncCalls = 32
/** How much longer than its own deadline a process may take to answer. */
const graceMs = 2000

/**
 * Runs calls in one process, several at once. When a call blocks a thread beyond its deadline, the process takes no more calls: the others
 * in it may end there, and later ones go to a new process. When a process dies or stops answering, each of its calls runs again alone. A
 * call that fails in this way while alone gets that failure as its outcome.
 */
export function createPythonCalls({ start, first, timeoutMs, memoryMb }: PythonCallsOptions): PythonCalls {
  const limit = first.chosen.async ? asyncCalls : threads
  const queue: Call[] = []
  const lanes = new Set<Lane>()
  const ending = new Set<Promise<void>>()
  let current: Lane | null = openLane(first)
  let starting = false
  let closed = false
  let nextId = 0

  function openLane({ process, chosen }: StartedFunction): Lane {
    const lane: Lane = { process, running: new Map() }
    lanes.add(lane)
    process.use(
      { use: chosen.name, byKeyword: chosen.keywords, threads, memoryMb },
      {
        onAnswer: (answer) => lanes.has(lane) && settle(lane, answer),
        onExit: (why, output) => lanes.has(lane) && interrupt(lane, { kind: 'died', why: `${why}.${output}` }),
      },
    )
    return lane
  }

  async function openCurrent(): Promise<void> {
    starting = true
    try {
      const started = await start()
      if (closed) await started.process.close()
      else current = openLane(started)
    } catch (error) {
      for (const call of queue.splice(0)) call.fail(error)
    } finally {
      starting = false
    }
    next()
  }

  function next(): void {
    while (!closed && !starting && queue.length > 0) {
      const [call] = queue as [Call]
      if (call.input.signal.aborted) queue.shift()
      else if (current === null) return void openCurrent()
      else if (isFull(current, call)) return
      else begin(current, queue.shift()!)
    }
  }

  function isFull({ running }: Lane, call: Call): boolean {
    const holdsLone = [...running.values()].some((each) => each.call.alone)
    return holdsLone || running.size >= (call.alone ? 1 : limit)
  }

  function begin(lane: Lane, call: Call): void {
    const { id, input } = call
    lane.running.set(id, { call, timer: setTimeout(() => interrupt(lane, { kind: 'unresponsive' }), timeoutMs + graceMs) })
    lane.process.call({ id, arguments: input.arguments, timeoutMs })
    input.signal.addEventListener('abort', () => lane.running.has(id) && lane.process.cancel(id), { once: true })
  }

  function settle(lane: Lane, answer: PythonAnswer): void {
    const entry = lane.running.get(answer.id)
    if (!entry) return
    clearTimeout(entry.timer)
    lane.running.delete(answer.id)
    entry.call.end(answer)
    if (answer.kind === 'timeout' && answer.stuck && lane === current) current = null
    if (lane !== current && lane.running.size === 0) endLane(lane)
    next()
  }

  function interrupt(lane: Lane, end: PythonEnd): void {
    const calls = [...lane.running.values()].map(({ call }) => call)
    if (lane === current) current = null
    endLane(lane)
    if (calls.length === 1) calls[0]!.end(end)
    else for (const call of calls) call.alone = true
    if (calls.length > 1) queue.unshift(...calls)
    next()
  }

  function endLane(lane: Lane): void {
    for (const { timer } of lane.running.values()) clearTimeout(timer)
    lane.running.clear()
    lanes.delete(lane)
    const end = lane.process.close()
    ending.add(end)
    void end.finally(() => ending.delete(end))
  }

  return {
    async call<Outcome>(input: PythonCallInput<Outcome>): Promise<Outcome> {
      const { promise, resolve, reject } = Promise.withResolvers<Outcome>()
      const onAbort = () => reject(input.signal.reason)
      input.signal.addEventListener('abort', onAbort, { once: true })
      queue.push({ id: nextId++, input, end: (end) => resolve(input.toOutcome(end)), fail: reject, alone: false })
      next()
      try {
        return await promise
      } finally {
        input.signal.removeEventListener('abort', onAbort)
      }
    },
    async close() {
      closed = true
      const pending = [...queue.splice(0), ...[...lanes].flatMap(({ running }) => [...running.values()].map(({ call }) => call))]
      for (const lane of lanes) endLane(lane)
      current = null
      for (const call of pending) call.end({ kind: 'closed' })
      await Promise.all(ending)
    },
  }
}

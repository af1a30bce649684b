/** A call of a reward, from when it is queued until it is settled. */
export interface RewardCall<Values, Answer, Outcome> {
  readonly values: Values
  readonly signal: AbortSignal
  readonly toOutcome: (end: CallEnd<Answer>) => Outcome
}

/** How a call ended: with an answer, over its deadline in a process that no longer answers, or with its process. */
export type CallEnd<Answer> =
  | Answer
  | { readonly kind: 'unresponsive' }
  | { readonly kind: 'died'; readonly why: string; readonly reason: DeathReason }
  | { readonly kind: 'closed' }

/** `uncaught`: an error of the user's code outside its call. */
export type DeathReason = 'exit' | 'memory' | 'uncaught'

/** A result of a call, by its id. `stuck`: it is over its deadline and still blocks a thread. */
export interface CallAnswer {
  readonly id: number
  readonly kind: string
  readonly stuck?: boolean
}

/** A process or a thread that runs calls of a reward, several at once. It answers a call that is over its deadline, unless it is blocked. */
export interface CallProcess<Values, Answer> {
  listen(listener: CallListener<Answer>): void
  call(call: { readonly id: number; readonly values: Values; readonly timeoutMs: number }): void
  cancel(id: number): void
  close(): Promise<void>
}

export interface CallListener<Answer> {
  onAnswer(answer: Answer): void
  /** Called when the process has ended without `close`. `why` reads as "it was …". */
  onExit(why: string, reason?: DeathReason): void
}

export interface RewardCallsOptions<Values, Answer> {
  /** Starts a process. If it rejects, every queued call ends with that error. */
  readonly start: () => Promise<CallProcess<Values, Answer>>
  readonly first: CallProcess<Values, Answer>
  /** Most calls at once. */
  readonly limit: number
  readonly timeoutMs: number
}

export interface RewardCalls<Values, Answer> {
  /** Rejects with the signal's reason, or with the error of starting a process. */
  call<Outcome>(input: RewardCall<Values, Answer, Outcome>): Promise<Outcome>
  /** Ends every call that is queued or running as `closed`. */
  close(): Promise<void>
}

interface Call<Values, Answer> {
  readonly id: number
  readonly input: RewardCall<Values, Answer, unknown>
  readonly end: (end: CallEnd<Answer>) => void
  readonly fail: (error: unknown) => void
  /** Whether it was running when a process died and therefore runs alone. */
  alone: boolean
}

/** One process and the calls that run in it. */
interface Lane<Values, Answer> {
  readonly process: CallProcess<Values, Answer>
  readonly running: Map<number, { readonly call: Call<Values, Answer>; readonly timer: NodeJS.Timeout }>
}

/** How much longer than its own deadline a process may take to answer. */
const graceMs = 2000

/**
 * Runs calls in one process, several at once. When a call blocks a thread beyond its deadline, the process takes no more calls: the others
 * in it may end there, and later ones go to a new process. When a process dies or stops answering, each of its calls runs again alone. A
 * call that fails in this way while alone gets that failure as its outcome.
 */
export function createRewardCalls<Values, Answer extends CallAnswer>({
  start,
  first,
  limit,
  timeoutMs,
}: RewardCallsOptions<Values, Answer>): RewardCalls<Values, Answer> {
  const queue: Call<Values, Answer>[] = []
  const lanes = new Set<Lane<Values, Answer>>()
  const ending = new Set<Promise<void>>()
  let current: Lane<Values, Answer> | null = openLane(first)
  let starting = false
  let closed = false
  let nextId = 0

  function openLane(process: CallProcess<Values, Answer>): Lane<Values, Answer> {
    const lane: Lane<Values, Answer> = { process, running: new Map() }
    lanes.add(lane)
    process.listen({
      onAnswer: (answer) => lanes.has(lane) && settle(lane, answer),
      onExit: (why, reason = 'exit') => lanes.has(lane) && interrupt(lane, { kind: 'died', why, reason }),
    })
    return lane
  }

  async function openCurrent(): Promise<void> {
    starting = true
    try {
      const started = await start()
      if (closed) await started.close()
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
      const [call] = queue as [Call<Values, Answer>]
      if (call.input.signal.aborted) queue.shift()
      else if (current === null) return void openCurrent()
      else if (isFull(current, call)) return
      else begin(current, queue.shift()!)
    }
  }

  function isFull({ running }: Lane<Values, Answer>, call: Call<Values, Answer>): boolean {
    const holdsLone = [...running.values()].some((each) => each.call.alone)
    return holdsLone || running.size >= (call.alone ? 1 : limit)
  }

  function begin(lane: Lane<Values, Answer>, call: Call<Values, Answer>): void {
    const { id, input } = call
    lane.running.set(id, { call, timer: setTimeout(() => interrupt(lane, { kind: 'unresponsive' }), timeoutMs + graceMs) })
    lane.process.call({ id, values: input.values, timeoutMs })
    input.signal.addEventListener('abort', () => lane.running.has(id) && lane.process.cancel(id), { once: true })
  }

  function settle(lane: Lane<Values, Answer>, answer: Answer): void {
    const entry = lane.running.get(answer.id)
    if (!entry) return
    clearTimeout(entry.timer)
    lane.running.delete(answer.id)
    entry.call.end(answer)
    if (answer.stuck && lane === current) current = null
    if (lane !== current && lane.running.size === 0) endLane(lane)
    next()
  }

  function interrupt(lane: Lane<Values, Answer>, end: CallEnd<Answer>): void {
    const calls = [...lane.running.values()].map(({ call }) => call)
    if (lane === current) current = null
    endLane(lane)
    if (calls.length === 1) calls[0]!.end(end)
    else for (const call of calls) call.alone = true
    if (calls.length > 1) queue.unshift(...calls)
    next()
  }

  function endLane(lane: Lane<Values, Answer>): void {
    for (const { timer } of lane.running.values()) clearTimeout(timer)
    lane.running.clear()
    lanes.delete(lane)
    const end = lane.process.close()
    ending.add(end)
    void end.finally(() => ending.delete(end))
  }

  return {
    async call<Outcome>(input: RewardCall<Values, Answer, Outcome>): Promise<Outcome> {
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

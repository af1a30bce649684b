import type { AttemptContext, AttemptState } from '../contracts/agent-program.ts'
import { errorMessage, TrainError } from '../protocol/errors.ts'
import { orAborted } from './or-aborted.ts'

export interface AttemptStatesOptions {
  /** Its signal ends set-ups that are under way. */
  readonly attempt: AttemptContext
  /** Longest time of one set-up, and of one tear-down. */
  readonly timeoutMs: number
  /** How long the end of an attempt waits for a set-up that is still under way. */
  readonly graceMs: number
}

/** The states of one attempt. */
export interface AttemptStates {
  /**
   * Sets the state up at the first call; later calls get the same one. Rejects with ENVIRONMENT_START_FAILED, or with the reason of the
   * attempt's signal.
   */
  get<State>(definition: AttemptState<State>): Promise<State>
  /** Tears down every state that was set up, once. Resolves to the errors of doing so. */
  close(): Promise<TrainError[]>
}

interface OpenState {
  readonly ready: Promise<unknown>
  tearDown(): Promise<void>
}

export function createAttemptStates({ attempt, timeoutMs, graceMs }: AttemptStatesOptions): AttemptStates {
  const { rollout, signal } = attempt
  const states = new Map<unknown, OpenState>()

  function failed(what: string, cause: unknown): TrainError {
    const reason = errorMessage(cause).replace(/\.$/, '')
    const message = `The ${what} of a state of rollout "${rollout}" failed: ${reason}. Correct it, or what it depends on.`
    return new TrainError('ENVIRONMENT_START_FAILED', message, { cause })
  }

  function open<State>({ setup, teardown }: AttemptState<State>): OpenState {
    let started: Promise<State>
    const run = (limit: AbortSignal) => {
      started = (async () => setup({ ...attempt, signal: limit }))()
      return started
    }
    const ready = withLimit(timeoutMs, run, signal).catch((error: unknown) => {
      throw signal.aborted ? signal.reason : failed('set-up', error)
    })
    return {
      ready,
      async tearDown() {
        const ended = started.then(
          async (state) => teardown && (await withLimit(timeoutMs, async (limit) => teardown(state, { ...attempt, signal: limit }))),
          () => {},
        )
        ended.catch(() => {})
        // A set-up that ignores its signal is not waited for. Its state is torn down when the set-up ends.
        await withLimit(graceMs, () => started.then(noop, noop))
        await ended
      },
    }
  }

  return {
    async get<State>(definition: AttemptState<State>) {
      signal.throwIfAborted()
      const state = states.get(definition) ?? open(definition)
      states.set(definition, state)
      return (await state.ready) as State
    },
    async close() {
      const ended = Array.from(states.values(), (state) =>
        state.tearDown().then(
          () => null,
          (error: unknown) => failed('tear-down', error),
        ),
      )
      return (await Promise.all(ended)).filter((error) => error !== null)
    },
  }
}

const noop = () => {}

/** Runs with a signal that aborts after `milliseconds` or with `outer`, and waits no longer than that. */
async function withLimit<Value>(milliseconds: number, run: (limit: AbortSignal) => Promise<Value>, outer?: AbortSignal): Promise<Value> {
  const deadline = new AbortController()
  const timer = setTimeout(() => deadline.abort(new Error(`it took more than ${milliseconds} ms`)), milliseconds)
  const limit = outer ? AbortSignal.any([outer, deadline.signal]) : deadline.signal
  try {
    return await orAborted(run(limit), limit)
  } finally {
    clearTimeout(timer)
  }
}

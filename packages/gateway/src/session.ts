import { setTimeout as sleep } from 'node:timers/promises'
import { type PolicyEndpoint, type PolicySession, TrainError, type Trajectory } from '@aworld-train/core'
import { type SessionState, toTrajectories } from './session-state.ts'

export interface SessionOptions {
  readonly state: SessionState
  /** Endpoints by agent. */
  readonly endpoints: ReadonlyMap<string, Pick<PolicyEndpoint, 'baseUrl' | 'apiKey'>>
  /** How long the last calls may take to end. */
  readonly graceMs: number
  /** Removes the URLs. */
  readonly revoke: () => void
  /** Records the answers that wait to be recorded. */
  readonly flush: () => void
  /** Called when the final record has been handed out. */
  readonly release: () => void
}

/** Waits for all calls, at most `graceMs`. */
async function settleCalls({ calls }: SessionState, graceMs: number): Promise<void> {
  if (calls.size === 0) return
  const deadline = new AbortController()
  const late = sleep(graceMs, undefined, { signal: deadline.signal }).catch(() => {})
  try {
    await Promise.race([Promise.all(Array.from(calls, (call) => call.settled)), late])
  } finally {
    deadline.abort()
  }
}

async function endSession({ state, graceMs, revoke, flush, release }: SessionOptions): Promise<readonly Trajectory[]> {
  revoke()
  state.closing = true
  for (const call of state.calls) call.closeSession()
  flush()
  // An engine has `graceMs` to end an aborted call, and recording that call has the same time again.
  await settleCalls(state, 2 * graceMs)
  if (state.calls.size > 0) {
    for (const call of state.calls) call.destroy()
    await settleCalls(state, graceMs)
  }
  state.sealed = true
  for (const agent of state.agents.values()) {
    for (const turn of agent.turns) if (turn.delivered === 'pending') turn.delivered = 'abandoned'
  }
  release()
  return toTrajectories(state)
}

/** Opens a session over the state of one attempt. */
export function createSession(options: SessionOptions): PolicySession {
  const { state, endpoints } = options
  let ended: Promise<readonly Trajectory[]> | undefined
  return {
    endpoint(agent) {
      const endpoint = endpoints.get(agent)
      if (!endpoint) {
        const names = [...endpoints.keys()].join(', ')
        throw new TrainError('AGENT_INVALID', `Agent "${agent}" is not declared in this rollout; declared are: ${names}.`)
      }
      return { ...endpoint, model: state.agents.get(agent)!.home.name }
    },
    trajectories: () => toTrajectories(state),
    failure: () => state.failure,
    close() {
      ended ??= endSession(options)
      return ended
    },
  }
}

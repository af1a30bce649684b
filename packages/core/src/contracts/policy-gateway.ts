import type { Trajectory } from '../protocol/episode.ts'
import type { Sampling } from '../protocol/sampling.ts'
import type { AgentDeclaration, PolicyEndpoint } from './agent-program.ts'
import type { TraceHeaders } from './trace-headers.ts'

/** A fixed address for a session without an end, which survives a restart. */
export interface FixedAddress {
  /** One part of a URL. The base URL is `{gateway}/{path}/v1`, or `{gateway}/v1` if it is empty. */
  readonly path: string
  /** Required from every request, as the bearer token or `x-api-key`. */
  readonly key: string
}

export interface SessionRequest {
  readonly rollout: string
  readonly attempt: number
  readonly taskId: string
  readonly sample: number
  readonly policy: string
  readonly sampling: Sampling
  /** `model` names one of the gateway's models for this agent. Default: `policy`. */
  readonly agents: readonly Pick<AgentDeclaration, 'name' | 'trainable' | 'model' | 'randomKey'>[]
  /**
   * Most tokens that all calls together may sample; `sampling.maxTokens` is the limit of one call. The call that reaches this is cut short,
   * and later calls are refused.
   */
  readonly maxSessionTokens?: number | undefined
  readonly maxTurns?: number | undefined
  /**
   * Most tokens of a conversation from its first sampled one on. The call that reaches this is cut short, and later ones are refused as
   * beyond the context.
   */
  readonly maxResponseTokens?: number | undefined
  /** Most that all calls to frozen models may cost, in US dollars. A call that begins at or above it is refused. */
  readonly maxCost?: number | undefined
  /** Most prompt and completion tokens of all calls to frozen models. */
  readonly maxFrozenTokens?: number | undefined
  /** The parent span of its calls' spans. A call that names a span of the same trace becomes that one's child. */
  readonly traceHeaders?: TraceHeaders | undefined
  /** Most concurrent calls of a session that is no rollout; one more is refused with 503. Calls of rollouts are unbounded and wait. */
  readonly maxCallsInFlight?: number | undefined
  /** The address of a session with one agent. It replaces the usual URL that cannot be guessed. */
  readonly address?: FixedAddress | undefined
  /**
   * Number of turns kept of each agent, for a session without an end; unbounded by default. The call after that many begins a new record:
   * its prompt is rendered from its messages instead of extending the sampled ids.
   */
  readonly maxKeptTurns?: number | undefined
  /**
   * Called with every turn. When it resolves, the turn is durable, and only then a token engine's response is sent. If bytes pass through
   * to a chat engine, the response is sent at once, and only the closing of the session waits. The turn is `pending` or `abandoned` at this
   * time; the final record tells whether it was delivered.
   */
  readonly onTurn?: ((trajectory: string, turn: Trajectory['turns'][number]) => Promise<void>) | undefined
  /**
   * Called with `true` when a call begins to wait because a third party refuses calls for load, and with `false` when none waits any more.
   */
  readonly onWait?: ((waits: boolean) => void) | undefined
}

/** The open URLs of one attempt. */
export interface PolicySession {
  endpoint(agent: string): PolicyEndpoint
  /** The record so far: a trajectory for each invocation, and one for each agent that made no call. */
  trajectories(): readonly Trajectory[]
  /**
   * The first limit or policy failure of the session, as a typed error; `null` if there was none. The `details.stopReason` of an
   * AGENT_LIMIT is `turn-limit` or `token-limit`, that of a POLICY_CONTEXT_OVERFLOW `context-overflow`.
   */
  failure(): Error | null
  /** Ends the capability. Calls in flight are aborted, and later ones get the answer of an unknown URL. Resolves to the final record. */
  close(): Promise<readonly Trajectory[]>
}

export interface GatewayCounts {
  readonly calls: number
  readonly failures: number
  readonly continuations: number
  /** Roots and branches by reason. */
  readonly branches: Readonly<Record<string, number>>
  /** Tolerated differences between a request and the record, by kind. */
  readonly tolerated: Readonly<Record<string, number>>
  /** Request fields without effect, by name: the trainer decides about them, or nothing here uses them. */
  readonly ignored?: Readonly<Record<string, number>>
  /** Tool calls that were sampled but delivered as text, by kind. */
  readonly parseIssues?: Readonly<Record<string, number>>
  readonly inFlight: number
}

export interface PolicyGateway {
  open(request: SessionRequest): PolicySession
  /** Holds new calls until `resume`. With `drain` it resolves when none is in flight. */
  pause(options: { drain: boolean }): Promise<void>
  resume(): void
  /** Calls `listener` with `true` when calls begin to be held, and with `false` when they continue. The returned function ends that. */
  onPause(listener: (paused: boolean) => void): () => void
  counts(): GatewayCounts
  close(): Promise<void>
}

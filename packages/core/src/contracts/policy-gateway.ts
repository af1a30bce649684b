import type { Sampling, Trajectory } from '@aworld-train/protocol'
import type { PolicyEndpoint } from './agent-program.ts'
import type { TraceHeaders } from './trace-headers.ts'

/** An address for a session without an end, which is the same after a restart. */
export interface FixedAddress {
  /** One part of a URL: the base URL is `{gateway}/{path}/v1`, or `{gateway}/v1` where it is empty. */
  readonly path: string
  /** Asked of every request, as the bearer token or `x-api-key`. */
  readonly key: string
}

export interface SessionRequest {
  readonly rollout: string
  readonly attempt: number
  readonly taskId: string
  readonly sample: number
  readonly policy: string
  readonly sampling: Sampling
  /** `model` names one of the gateway's models for this agent; `policy` when absent. */
  readonly agents: readonly { readonly name: string; readonly trainable: boolean; readonly model?: string | undefined }[]
  /** Tokens that all calls together may sample, where `sampling.maxTokens` is the limit of one call. The call that reaches this is cut short, and later calls are refused. */
  readonly maxSessionTokens?: number | undefined
  readonly maxTurns?: number | undefined
  /** Tokens that a conversation may have from its first sampled one on. The call that reaches this is cut short, and later ones are refused as beyond the context. */
  readonly maxResponseTokens?: number | undefined
  /** What calls to frozen models may cost in all, in US dollars; the call that begins at or above it is refused. */
  readonly maxCost?: number | undefined
  /** Prompt and completion tokens that frozen models may be asked for in all. */
  readonly maxFrozenTokens?: number | undefined
  /** The span that the spans of its calls are children of; a call that names a span of the same trace is that one's child. */
  readonly traceHeaders?: TraceHeaders | undefined
  /** Calls at once, of a session that is no rollout; the call above it is refused with 503. Unbounded for rollouts, whose calls wait. */
  readonly maxCallsInFlight?: number | undefined
  /** The address of a session with one agent, in place of a URL that nobody can guess. */
  readonly address?: FixedAddress | undefined
  /**
   * How many turns of each agent are kept, for a session without an end; unbounded by default. The call after that many begins
   * a new record: its prompt is rendered from its messages instead of going on from the sampled ids.
   */
  readonly maxKeptTurns?: number | undefined
  /**
   * Called with every turn; when it resolves, the turn is durable. A token engine's response is sent after that. Where bytes pass
   * through to a chat engine, the response is sent at once, and only the closing of the session waits. The turn is `pending` or
   * `abandoned` at this time; the final record says whether it was delivered.
   */
  readonly onTurn?: ((agent: string, turn: Trajectory['turns'][number]) => Promise<void>) | undefined
}

/** The open URLs of one attempt. */
export interface PolicySession {
  endpoint(agent: string): PolicyEndpoint
  /** What was recorded so far, one trajectory an agent. */
  trajectories(): readonly Trajectory[]
  /**
   * The first limit or policy failure met, as a typed error; `null` when none was. The `details.stopReason` of an
   * AGENT_LIMIT is `turn-limit` or `token-limit`, that of a POLICY_CONTEXT_OVERFLOW `context-overflow`.
   */
  failure(): Error | null
  /** Ends the capability: calls in flight are aborted, later ones get the answer of an unknown URL. Resolves to the final record. */
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
  /** Request fields that had no effect, by name: the trainer decides about them, or nothing here uses them. */
  readonly ignored?: Readonly<Record<string, number>>
  /** What was sampled as a tool call and delivered as text, by kind. */
  readonly parseIssues?: Readonly<Record<string, number>>
  readonly inFlight: number
}

export interface PolicyGateway {
  open(request: SessionRequest): PolicySession
  /** Holds new calls until `resume`; with `drain` resolves when none is in flight. */
  pause(options: { drain: boolean }): Promise<void>
  resume(): void
  /** Calls `listener` with `true` when calls begin to be held, and with `false` when they go on; the function that it returns ends that. */
  onPause(listener: (paused: boolean) => void): () => void
  counts(): GatewayCounts
  close(): Promise<void>
}

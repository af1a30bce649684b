import type { ServerResponse } from 'node:http'
import type { Encoder } from '@aworld-train/chat'
import { type Turn, toTrainError } from '@aworld-train/core'
import type { ActiveCall } from './active-call.ts'
import type { Dialect } from './call.ts'
import type { ReadCallKind } from './call-kind.ts'
import type { Counters } from './counters.ts'
import type { FrozenClients } from './frozen/frozen-client.ts'
import type { ModelNames } from './frozen/model-names.ts'
import type { Gate } from './gate.ts'
import type { HistoryWatch } from './history-watch.ts'
import type { HostedTools } from './hosted-tools.ts'
import type { ModelTable } from './models/model-table.ts'
import type { CallObservation, Observer } from './observe/observer.ts'
import type { GatewayLimits, GatewayLogger } from './options.ts'
import type { Pacer } from './pacer.ts'
import type { Recorder } from './pass-through/recorder.ts'
import type { AgentState, SessionState } from './session-state.ts'
import type { Answer } from './stages/encode.ts'

/** Parts that all calls of a gateway share. */
export interface GatewayParts {
  readonly models: ModelTable
  readonly seed: number
  readonly gate: Gate
  readonly counters: Counters
  readonly observer: Observer
  readonly limits: GatewayLimits
  readonly logger: GatewayLogger | undefined
  readonly history: HistoryWatch
  /** Text that agents may change from call to call. */
  readonly ignore: readonly RegExp[]
  readonly callKind: ReadCallKind
  readonly hosted: HostedTools
  /** Encodes long texts in a thread of its own. */
  readonly encoder: Encoder
  /** Has large bodies read and rendered one after another. */
  readonly pacer: Pacer
  /** Reads the answers of chat engines. Its thread starts with the first of them. */
  readonly recorder: Recorder
  readonly frozen: FrozenClients
  readonly modelNames: ModelNames
}

export interface ServeCallOptions {
  readonly parts: GatewayParts
  readonly session: SessionState
  readonly agent: AgentState
  readonly dialect: Dialect
  readonly body: Buffer
  readonly response: ServerResponse
  readonly observed: CallObservation
  readonly requestId: string
}

/** Progress of a call: its recorded turn, the answer that has begun, and whether that is a stream. */
export interface Progress {
  turn: Pick<Turn, 'delivered'> | null
  answer: Answer | null
  stream: boolean
}

/** A call that is being served. */
export interface ServedCall {
  readonly options: ServeCallOptions
  readonly active: ActiveCall
  readonly progress: Progress
}

/** Records whether a turn's answer was delivered, unless a later request has already shown it. */
export function settleDelivery({ session, parts }: ServeCallOptions, turn: Pick<Turn, 'delivered'>, sent: boolean): void {
  if (!session.sealed && turn.delivered !== 'delivered') turn.delivered = sent ? 'delivered' : 'abandoned'
  if (turn.delivered === 'abandoned') parts.counters.abandonedTurns++
}

/** Reports a recorded turn. Resolves when it is durable. Rejects with STORE_FAILED. */
export async function keepTurn({ options, progress }: Pick<ServedCall, 'options' | 'progress'>, turn: Turn): Promise<void> {
  const { session, agent, observed } = options
  progress.turn = turn
  observed.recorded(turn)
  try {
    await session.request.onTurn?.(agent.id, turn)
  } catch (cause) {
    throw toTrainError(cause, 'STORE_FAILED')
  }
}

import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import type { ChatModel, HistoryMode } from '@aworld-train/chat'
import type {
  AnswerKey,
  ChannelArrays,
  ChannelDatasetRow,
  ChannelGenerated,
  ChannelGenerateFailed,
  ChannelHello,
  ChannelSubmit,
  Episode,
  RowSelection,
  RunProgress,
  TokenEngine,
  TrainError,
  TrainerRowOptions,
  TrainingTask,
} from '@aworld-train/core'
import type { RolloutService } from '../service/rollout-service.ts'
import type { EngineConnection } from './channel-connection.ts'
import type { ChannelServerLimits } from './channel-limits.ts'
import type { ChannelOutcome, ChannelTotals } from './channel-tally.ts'
import type { Submission, SubmissionTable } from './submission-table.ts'

export interface ChannelEngineOptions {
  /** Name of the policy, as rollouts and the gateway know it. */
  readonly name: string
  /** The model's Hugging Face folder; `null` where its files come from the first trainer client. */
  readonly directory: string | null
  /** Folder that files of trainer clients are kept in, each set in a folder named by its hash. Needed where `directory` is `null`. */
  readonly filesDirectory?: string | null | undefined
  /** Default `loop`. */
  readonly history?: HistoryMode | undefined
  /** Called once the model is ready, with warnings such as that its template rewrites earlier turns. */
  readonly onWarning?: ((warning: ChannelWarning) => void) | undefined
  /** Called with the folder of a model before it is served; its first trainer client waits for that. */
  readonly onModel?: ((directory: string) => Promise<void>) | undefined
}

export interface ChannelWarning {
  readonly code: string
  readonly message: string
}

/** A `TokenEngine` whose calls travel down the connection that submitted their rollout. */
export interface ChannelEngine extends TokenEngine {
  /** Tokenizer and template, once the first trainer client was welcomed; throws POLICY_UNAVAILABLE before. The `chat` of a token route. */
  chat(): ChatModel
  /** The side of it that a channel server drives. */
  readonly link: EngineLink
}

/** The side of an engine that a channel server calls. */
export interface EngineLink {
  /** The rollouts that trainer clients wait for. The engine sends the model calls of each to its connection. */
  readonly submissions: SubmissionTable
  /** Whether the files of this model are needed. Rejects with MODEL_MISMATCH where another one is served and `isBound`: others use it. */
  needsFiles(hello: ChannelHello, isBound: boolean): Promise<boolean>
  /** Keeps the files of a trainer client; throws MODEL_MISMATCH where they are not those of its hello. */
  keepFiles(hello: ChannelHello, files: ReadonlyMap<string, Uint8Array>): Promise<void>
  /** Loads the model if need be and renders the trainer client's conversation; then it is the one that is served. Rejects with TEMPLATE_MISMATCH, TEMPLATE_UNSUPPORTED, MODEL_MISMATCH. */
  check(hello: ChannelHello, renderedIds: Int32Array, isBound: () => boolean): Promise<void>
  /** A trainer client has connected; its answers may come from now on. */
  join(connection: EngineConnection): void
  /** Gives a submission another connection: its calls are sent there, those that waited first; with `null` they wait for a connection. */
  connect(submission: Submission, connection: EngineConnection | null): void
  /** The connection is gone. Its calls wait for the next connection of their submission. Returns the submissions without one. */
  disconnect(connection: EngineConnection): Submission[]
  /** Ends a submission: it leaves the table, and its calls fail with `reason`. Returns false where it had left before. */
  release(submission: Submission, reason: TrainError): boolean
  /** Takes an answer of a trainer client. */
  answer(connection: EngineConnection, message: ChannelGenerated | ChannelGenerateFailed, arrays: ChannelArrays): void
  /** New weights sample. `restart` means that an older version may follow a newer one. */
  weights(version: number, options?: { readonly restart: boolean }): void
  /** Calls under way. */
  calls(): number
}

/** A row of a trainer client as a task, and the answer that only the reward function may read. */
export interface RowTask {
  readonly task: TrainingTask
  readonly answer: AnswerKey
  /** Kind of the task; its data source by default. */
  readonly kind?: string | undefined
}

/** Throws ROLLOUT_INVALID for a row that is no task. */
export type ToTask = (row: ChannelDatasetRow, submit: ChannelSubmit) => RowTask

/** Answers of the rows under way. Only the scoring side gets this object. */
export interface ChannelAnswers {
  /** Keeps an answer until each rollout that holds it releases it. */
  hold(key: string, answer: AnswerKey): void
  release(key: string): void
  /** The answer to a task under way; for another task, one whose `groundTruth` is `null`. */
  answerKey(taskId: string): AnswerKey
  has(taskId: string): boolean
}

export interface ChannelServerOptions {
  /** The caller closes it, like everything here. */
  readonly service: RolloutService
  readonly engine: ChannelEngine
  readonly store: Pick<RunProgress, 'getState' | 'setState'>
  /** Made by `createChannelAnswers`. The runner of `service` calls its `answerKey`. */
  readonly answers: ChannelAnswers
  readonly toTask: ToTask
  /** The text that the reward scored, for the trainer client's record; the episode's answer where absent. */
  readonly solution?: ((episode: Episode) => string) | undefined
  /** Default `all`. */
  readonly rows?: RowSelection | undefined
  /** `native`: the trainer scores, and the runner of `service` has no reward. Default `service`. */
  readonly reward?: 'service' | 'native' | undefined
  /** An episode that ended at a limit is trained with its reward (default), or fails, so that the trainer client replaces its group. */
  readonly incompleteEpisodes?: TrainerRowOptions['incompleteEpisodes']
  /** Share of an agent's own reward in the reward of its rows. Default 0. */
  readonly ownReward?: TrainerRowOptions['ownReward']
  /** Longest attempt of a rollout, as set in the runner of `service`; messages name it. */
  readonly rolloutTimeoutMs?: number | null | undefined
  /** Longest answer of one model call, in tokens. Default: the rest of the row's response. */
  readonly maxCompletionTokens?: number | null | undefined
  /** How long the rollouts of a lost connection are kept. Default 30,000. */
  readonly graceMs?: number | undefined
  readonly limits?: Partial<ChannelServerLimits> | undefined
  readonly onOutcome?: ((outcome: ChannelOutcome) => void) | undefined
  readonly onWarning?: ((warning: ChannelWarning) => void) | undefined
}

export interface ChannelCounts extends ChannelTotals {
  /** Open connections, including those whose greeting is not complete. */
  readonly connections: number
  /** Workers whose greeting is complete. */
  readonly workers: number
  /** Submissions without a result. */
  readonly open: number
  /** Model calls under way. */
  readonly calls: number
}

/** Serves trainer clients on the port of a rollout server, which takes it as `channel`. */
export interface ChannelServer {
  /** Takes over a socket whose token has been checked. */
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void
  counts(): ChannelCounts
  /** Ends all connections, as when the port closes; rollouts go on for the grace period. */
  disconnect(): void
  /** Ends all connections and cancels their submissions. */
  close(): Promise<void>
}

import type {
  AttemptAssignment,
  AttemptControl,
  AttemptName,
  AttemptOutcome,
  CoordinatorMessage,
  OpenToolCall,
  WorkerFile,
  WorkerHello,
  WorkerResult,
} from '@aworld-train/core'
import type { FramedSocket } from '../frames/framed-socket.ts'
import type { WorkerLink } from '../rollout-workers.ts'
import type { AnnouncedFiles } from './announced-files.ts'

/** The connection that a worker has at a time. */
export interface SessionConnection extends Pick<FramedSocket, 'close' | 'heardAt'> {
  send(message: CoordinatorMessage): void
}

export interface WorkerSessionOptions extends Pick<AnnouncedFiles, 'announce'> {
  readonly hello: Pick<WorkerHello, 'name' | 'incarnation' | 'agentHash'>
  /** The runner forgets the worker. */
  readonly onDismiss: (session: WorkerSession) => void
}

const idOf = ({ key, attempt }: AttemptName) => `${attempt} ${key}`

/** A worker from its first hello until the runner forgets it, with the attempts whose outcome is awaited. */
export class WorkerSession implements WorkerLink {
  readonly name: string
  readonly incarnation: string
  readonly agent: string
  /** Its launcher has reported that its process has ended. */
  hasExited = false
  /** Its open tool calls, as it last reported them. */
  lastCalls: readonly OpenToolCall[] = []
  /** `null` while its connection is lost. */
  connection: SessionConnection | null = null
  readonly #options: WorkerSessionOptions
  /** Callbacks that wait for the outcome of each attempt. */
  readonly #results = new Map<string, (outcome: AttemptOutcome) => void>()
  /** Whether the clock of an attempt stands, for those of which the worker was told. */
  readonly #clocks = new Map<string, { readonly rollout: AttemptName; readonly type: 'hold' | 'resume' }>()

  constructor(options: WorkerSessionOptions) {
    const { name, incarnation, agentHash } = options.hello
    this.name = name
    this.incarnation = incarnation
    this.agent = agentHash
    this.#options = options
  }

  /** Number of attempts whose outcome is awaited. */
  get awaited(): number {
    return this.#results.size
  }

  openCalls(): readonly OpenToolCall[] {
    return this.lastCalls
  }

  execute(assignment: AttemptAssignment, { signal }: Pick<AttemptControl, 'signal'>): Promise<AttemptOutcome> {
    const { key, attempt, task } = assignment
    const { promise, resolve } = Promise.withResolvers<AttemptOutcome>()
    this.#results.set(idOf(assignment), resolve)
    const cancel = () => this.#send({ type: 'cancel', key, attempt, reason: reasonOf(signal) })
    const assign = (files?: WorkerFile[]) => {
      // The attempt may have been fenced while its files were being read.
      if (this.#results.get(idOf(assignment)) !== resolve) return
      this.#send({ type: 'assign', ...assignment, ...(files && { files }) })
      if (signal.aborted) cancel()
      else signal.addEventListener('abort', cancel, { once: true })
    }
    if (task.files?.length) void this.#options.announce(task.files).then(assign)
    else assign()
    return promise
  }

  /** Hands an outcome to who awaits it. Returns false where nobody does. */
  end({ key, attempt, outcome }: Pick<WorkerResult, 'key' | 'attempt' | 'outcome'>): boolean {
    const resolve = this.#results.get(idOf({ key, attempt }))
    this.#forget({ key, attempt })
    resolve?.(outcome)
    return resolve !== undefined
  }

  hold(rollout?: AttemptName): void {
    this.#setClocks('hold', rollout)
  }

  resume(rollout?: AttemptName): void {
    this.#setClocks('resume', rollout)
  }

  fence({ key, attempt }: AttemptName): void {
    this.#forget({ key, attempt })
    this.#send({ type: 'fence', key, attempt })
  }

  kept({ key, attempt }: AttemptName): void {
    this.#send({ type: 'kept', key, attempt })
  }

  dismiss(): void {
    this.#options.onDismiss(this)
  }

  #forget(attempt: AttemptName): void {
    this.#results.delete(idOf(attempt))
    this.#clocks.delete(idOf(attempt))
  }

  #setClocks(type: 'hold' | 'resume', rollout: AttemptName | undefined): void {
    if (rollout) {
      if (!this.#results.has(idOf(rollout))) return
      this.#clocks.set(idOf(rollout), { rollout, type })
      this.#send({ type, rollout })
      return
    }
    this.#send({ type })
    // A worker that has connected again may have missed what it was told of single attempts.
    for (const clock of this.#clocks.values()) this.#send(clock)
  }

  #send(message: CoordinatorMessage): void {
    this.connection?.send(message)
  }
}

function reasonOf({ reason }: AbortSignal): string {
  return reason instanceof Error ? reason.message : 'its coordinator cancelled it'
}

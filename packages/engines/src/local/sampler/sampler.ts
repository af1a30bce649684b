import { type FinishReason, type GenerateRequest, type GenerateResult, TrainError } from '@aworld-train/core'
import { commonPrefix } from '../common-prefix.ts'
import type { Pool } from '../pool/pool.ts'
import { checkRequest } from './check-request.ts'
import { DecodeLoop } from './decode-loop.ts'
import { RowTable } from './row-table.ts'
import { leastAwaited, maxStopIds, rowFinish, rowState, samplerWord, threadWord, threadWords } from './sampler-layout.ts'
import { StopTexts } from './stop-texts.ts'

export interface SamplerOptions {
  readonly pool: Pool
  readonly stopTokenIds: readonly number[]
  /** Bytes of each token, for stop texts. */
  readonly tokenBytes: readonly Uint8Array[]
}

interface Call {
  readonly request: GenerateRequest
  readonly signal: AbortSignal
  readonly resolve: (result: GenerateResult) => void
  readonly reject: (error: unknown) => void
  readonly onAbort: () => void
  readonly stopTexts: StopTexts | null
  /** -1 while it queues. */
  row: number
  thread: number
  delivered: number
  /** Number of drawn tokens that were checked for stop texts. */
  judged: number
  finish: FinishReason | null
  /** Error of the caller's `onTokens`, which ends the call. */
  thrown: { readonly error: unknown } | null
}

/** Samples calls over the pool's threads with continuous batching: one row of cache a call, first come first served. */
export class Sampler {
  readonly #pool: Pool
  readonly #rows: RowTable
  readonly #loop: DecodeLoop
  readonly #words: Int32Array
  readonly #control: number
  readonly #tokenBytes: readonly Uint8Array[]
  readonly #queue: Call[] = []
  readonly #active = new Set<Call>()
  readonly #free: Set<number>
  /** By row: the rollout whose tokens it holds. */
  readonly #affinities: string[] = []
  readonly #load: number[]
  readonly #sampledSeen: number[]
  #sampled = 0
  #failure: { readonly error: unknown } | null = null
  #nextVersion = 0

  constructor({ pool, stopTokenIds, tokenBytes }: SamplerOptions) {
    const { layout, views } = pool
    this.#pool = pool
    this.#rows = new RowTable(layout, views)
    this.#loop = new DecodeLoop(pool, {
      hasRows: (thread) => this.#load[thread]! > 0,
      collect: (progress) => this.#collect(progress),
      fail: (error) => this.#failAll(error),
    })
    this.#words = views.i32
    this.#control = layout.sampler.control / 4
    this.#tokenBytes = tokenBytes
    this.#free = new Set(Array.from({ length: this.#rows.count }, (_, row) => row))
    this.#load = new Array(pool.threads).fill(0)
    this.#sampledSeen = new Array(pool.threads).fill(0)
    if (stopTokenIds.length > maxStopIds) {
      throw new TrainError(
        'CONFIG_INVALID',
        `The model names ${stopTokenIds.length} stop tokens and the engine holds ${maxStopIds}; list fewer in generation_config.json.`,
      )
    }
    this.#words.set([stopTokenIds.length, ...stopTokenIds], layout.sampler.stopIds / 4)
  }

  generate(request: GenerateRequest, signal: AbortSignal): Promise<GenerateResult> {
    try {
      signal.throwIfAborted()
      if (this.#failure) throw this.#failure.error
      checkRequest(request, this.#pool.layout.model)
    } catch (error) {
      return Promise.reject(error)
    }
    const { promise, resolve, reject } = Promise.withResolvers<GenerateResult>()
    const { stop } = request.sampling
    const stopTexts = stop.length > 0 ? new StopTexts(stop) : null
    const call: Call = {
      request,
      signal,
      resolve,
      reject,
      stopTexts,
      row: -1,
      thread: 0,
      delivered: 0,
      judged: 0,
      finish: null,
      thrown: null,
      onAbort: () => this.#abort(call),
    }
    signal.addEventListener('abort', call.onAbort, { once: true })
    this.#queue.push(call)
    this.#admit()
    return promise
  }

  weightVersion(): number {
    return this.#words[this.#control + samplerWord.version]!
  }

  sampledTokens(): number {
    for (let thread = 0; thread < this.#sampledSeen.length; thread++) {
      const now = Atomics.load(this.#words, this.#threadAt(thread) + threadWord.sampled)
      this.#sampled += (now - this.#sampledSeen[thread]!) >>> 0
      this.#sampledSeen[thread] = now
    }
    return this.#sampled
  }

  /** Makes sampling use the trainer's weights, under the next version, which is at least `leastVersion`. Call it within `exclusive`. */
  async publish(leastVersion = 0): Promise<number> {
    await this.#pool.run('publish')
    const version = Math.max(this.#nextVersion, leastVersion)
    const buffer = this.#control + samplerWord.buffer
    Atomics.store(this.#words, buffer, 1 - Atomics.load(this.#words, buffer))
    Atomics.store(this.#words, this.#control + samplerWord.version, version)
    this.#nextVersion = version + 1
    return version
  }

  /** Keeps sampling off the pool while `work` runs other commands. Rows then continue where they stopped. */
  exclusive<T>(work: () => Promise<T>): Promise<T> {
    return this.#loop.exclusive(work)
  }

  /** Ends all calls with POLICY_UNAVAILABLE and leaves the pool idle. */
  async close(): Promise<void> {
    this.#failAll(new TrainError('POLICY_UNAVAILABLE', 'The engine is closed; create another.'))
    await this.#loop.close()
  }

  #admit(): void {
    for (let at = 0; at < this.#queue.length; ) {
      const row = this.#freeRow(this.#queue[at]!)
      if (row < 0) break
      if (this.#isBeingRead(this.#queue[at]!.request.promptTokenIds)) at++
      else this.#give(this.#queue.splice(at, 1)[0]!, row)
    }
    this.#loop.start()
  }

  /** A free row for a call: the one of its previous call if possible, else the one that has been idle longest; -1 if there is none. */
  #freeRow({ request: { affinity } }: Call): number {
    if (this.#free.size === 0) return -1
    const lenders = new Set<number>()
    for (const { row } of this.#active) {
      if (this.#rows.read(row, 'state') === rowState.assigned) lenders.add(this.#rows.read(row, 'lender'))
    }
    let first = -1
    // Rows return to the end of the set.
    for (const row of this.#free) {
      if (lenders.has(row)) continue
      if (this.#affinities[row] === affinity) return row
      if (first < 0) first = row
    }
    return first
  }

  /** Gives a call a row, and any prefix that another row can lend. */
  #give(call: Call, row: number): void {
    const { promptTokenIds: prompt, affinity } = call.request
    const cached = this.#rows.cachedPrefix(row, prompt)
    let lender = -1
    let lent = cached
    for (let other = 0; other < this.#rows.count; other++) {
      if (other === row) continue
      const prefix = this.#rows.cachedPrefix(other, prompt)
      if (prefix > lent) [lender, lent] = [other, prefix]
    }
    const thread = this.#load.indexOf(Math.min(...this.#load))
    this.#free.delete(row)
    this.#affinities[row] = affinity
    this.#load[thread]!++
    call.row = row
    call.thread = thread
    this.#active.add(call)
    this.#rows.give(row, call.request, { thread, cached, lender, lent, stepwise: call.stopTexts !== null })
    this.#loop.wake(thread)
  }

  /**
   * Whether a row is reading much of a prompt that no row has read. A call then waits for it and borrows it, because the samples of a group
   * begin at once.
   */
  #isBeingRead(prompt: Int32Array): boolean {
    let coming = 0
    for (const { row, request } of this.#active) {
      const cached = this.#rows.read(row, 'cached')
      if (cached >= request.promptTokenIds.length) continue
      const shared = commonPrefix(request.promptTokenIds, prompt)
      if (shared > cached) coming = Math.max(coming, shared)
    }
    if (coming <= leastAwaited) return false
    for (let row = 0; row < this.#rows.count; row++) {
      if (this.#rows.cachedPrefix(row, prompt) >= coming - leastAwaited) return false
    }
    return true
  }

  #abort(call: Call): void {
    if (call.row < 0) {
      this.#queue.splice(this.#queue.indexOf(call), 1)
      call.reject(call.signal.reason)
      return
    }
    this.#cancel(call)
  }

  /** Cancels a call. The row ends at the worker's next step; without a session there is no worker to end it. */
  #cancel(call: Call): void {
    this.#rows.write(call.row, 'cancelled', 1)
    if (this.#loop.running) this.#loop.wake(call.thread)
    else this.#settle(call)
  }

  #collect(progress: boolean): void {
    for (const call of this.#active) {
      const state = this.#rows.read(call.row, 'state')
      const stranded = !this.#loop.running && this.#rows.read(call.row, 'cancelled') === 1
      if (state === rowState.finished || stranded) this.#settle(call)
      else if (state === rowState.waiting && !call.finish) this.#resume(call)
      else if (progress) this.#deliver(call)
    }
    this.#admit()
  }

  /** Resumes a row with stop texts, which waits after each token, unless a stop text was completed. */
  #resume(call: Call): void {
    this.#deliver(call)
    this.#judge(call)
    if (call.finish) this.#cancel(call)
    else if (this.#rows.read(call.row, 'cancelled') === 0) {
      this.#rows.write(call.row, 'state', rowState.running)
      this.#loop.wake(call.thread)
    }
  }

  #judge(call: Call): void {
    if (!call.stopTexts) return
    const { tokenIds } = this.#rows.completion(call.row, call.judged, this.#rows.drawn(call.row))
    call.judged += tokenIds.length
    for (const id of tokenIds) {
      if (call.stopTexts.endsWith(this.#tokenBytes[id] ?? new Uint8Array(0))) call.finish = { unified: 'stop', raw: 'stop-string' }
    }
  }

  #deliver(call: Call): void {
    const drawn = this.#rows.drawn(call.row)
    if (drawn === call.delivered) return
    const from = call.delivered
    call.delivered = drawn
    const { onTokens } = call.request
    if (!onTokens) return
    const { tokenIds, logprobs, weightVersions } = this.#rows.completion(call.row, from, drawn)
    try {
      weightVersions.forEach(({ fromToken, version }, index) => {
        const end = weightVersions[index + 1]?.fromToken ?? tokenIds.length
        onTokens(tokenIds.subarray(fromToken, end), logprobs.subarray(fromToken, end), version)
      })
    } catch (error) {
      call.thrown = { error }
      this.#rows.write(call.row, 'cancelled', 1)
      this.#loop.wake(call.thread)
    }
  }

  #settle(call: Call): void {
    const { row } = call
    // The caller may abort while it receives the last tokens.
    if (!this.#active.delete(call)) return
    this.#deliver(call)
    this.#judge(call)
    call.signal.removeEventListener('abort', call.onAbort)
    const failure = this.#failureOf(call)
    if (failure) call.reject(failure.error)
    else {
      const completion = this.#rows.completion(row, 0, this.#rows.drawn(row))
      call.resolve({ ...completion, finishReason: call.finish ?? this.#finishReason(call), cachedTokens: this.#rows.read(row, 'reused') })
    }
    this.#rows.write(row, 'state', rowState.free)
    this.#load[call.thread]!--
    this.#free.add(row)
    this.#admit()
  }

  #failureOf({ row, signal, finish, thrown }: Call): { readonly error: unknown } | null {
    if (thrown) return thrown
    if (this.#rows.read(row, 'finish') === rowFinish.invalid) {
      const message = `The weights of version ${this.weightVersion()} give logits that are not finite numbers; load an earlier checkpoint.`
      return { error: new TrainError('POLICY_UNAVAILABLE', message) }
    }
    return signal.aborted && !finish ? { error: signal.reason } : null
  }

  #finishReason({ row, request }: Call): FinishReason {
    if (this.#rows.read(row, 'finish') === rowFinish.stop) return { unified: 'stop', raw: 'stop-token' }
    return { unified: 'length', raw: this.#rows.drawn(row) >= request.sampling.maxTokens ? 'max-tokens' : 'context' }
  }

  /** Ends all calls and the sampler, because after a failure of the pool none of its data can be trusted. */
  #failAll(error: unknown): void {
    this.#failure ??= { error }
    for (const call of [...this.#active, ...this.#queue.splice(0)]) {
      call.signal.removeEventListener('abort', call.onAbort)
      call.reject(error)
      if (call.row >= 0) this.#rows.write(call.row, 'cancelled', 1)
    }
    this.#active.clear()
    this.#load.fill(0)
  }

  #threadAt(thread: number): number {
    return this.#pool.layout.sampler.threads / 4 + thread * threadWords
  }
}

import { roundUp } from '../kernels/sizes.ts'
import type { WorkerContext } from '../pool/worker-context.ts'
import { uniform } from '../random.ts'
import { copyCache } from './copy-cache.ts'
import { computeLogits, feedTokens, type Segment } from './decode-step.ts'
import { drawTruncated } from './draw-truncated.ts'
import {
  leastAwaited,
  type PublishedLayout,
  rowFinish,
  rowState,
  rowWord,
  rowWords,
  type StepScratch,
  samplerWord,
  threadWord,
  threadWords,
} from './sampler-layout.ts'

/** An idle worker checks again after this time, so that a lost wake-up costs no more than that. */
const idleWaitMs = 1_000

/** Samples the rows given to this thread until the main thread stops it. Threads share only weights, so there is no barrier. */
export function decodeCommand(context: WorkerContext): void {
  new DecodeSession(context).run()
}

class DecodeSession {
  readonly #context: WorkerContext
  readonly #words: Int32Array
  readonly #floats: Float32Array
  readonly #scratch: StepScratch
  readonly #weights: PublishedLayout
  readonly #version: number
  readonly #stopIds: ReadonlySet<number>
  readonly #control: number
  readonly #thread: number
  /** Rows of this thread that are neither waiting nor finished, oldest first. */
  #rows: number[] = []

  constructor(context: WorkerContext) {
    const { layout, views, threadIndex } = context
    const { sampler } = layout
    this.#context = context
    this.#words = views.i32
    this.#floats = views.f32
    this.#scratch = sampler.scratch[threadIndex]!
    this.#control = sampler.control / 4
    this.#thread = sampler.threads / 4 + threadIndex * threadWords
    // Another command of the pool publishes weights, so these two cannot change while this one runs.
    this.#version = this.#words[this.#control + samplerWord.version]!
    this.#weights = sampler.published[this.#words[this.#control + samplerWord.buffer] === 0 ? 0 : 1]
    const stop = sampler.stopIds / 4
    this.#stopIds = new Set(this.#words.subarray(stop + 1, stop + 1 + this.#words[stop]!))
  }

  run(): void {
    const words = this.#words
    let seen = Atomics.load(words, this.#thread + threadWord.work)
    this.#takeRows()
    while (Atomics.load(words, this.#control + samplerWord.stop) === 0) {
      const work = Atomics.load(words, this.#thread + threadWord.work)
      if (work !== seen) {
        seen = work
        this.#takeRows()
      } else if (this.#rows.length === 0) {
        Atomics.wait(words, this.#thread + threadWord.work, seen, idleWaitMs)
      } else {
        this.#step()
        Atomics.add(words, this.#thread + threadWord.steps, 1)
      }
    }
  }

  /** Finds this thread's rows, starts the given ones and ends the cancelled ones. */
  #takeRows(): void {
    const queuedRows = new Set(this.#rows)
    const { rows: count } = this.#context.layout.options.sampling
    for (let row = 0; row < count; row++) {
      const at = this.#row(row)
      const state = Atomics.load(this.#words, at + rowWord.state)
      if (state === rowState.free || state === rowState.finished || this.#words[at + rowWord.thread] !== this.#context.threadIndex) continue
      if (Atomics.load(this.#words, at + rowWord.cancelled) === 1) {
        this.#rows = this.#rows.filter((other) => other !== row)
        this.#finish(at, rowFinish.cancelled)
        continue
      }
      if (state === rowState.waiting || queuedRows.has(row)) continue
      if (state === rowState.assigned) this.#borrowCache(row)
      this.#keepCache(at)
      if (state === rowState.assigned) this.#start(at)
      this.#rows.push(row)
    }
  }

  /** Copies the part of this row's prompt that another row has. Before that, the main thread gives that row to no other call. */
  #borrowCache(row: number): void {
    const words = this.#words
    const at = this.#row(row)
    const source = words[at + rowWord.lender]!
    if (source < 0 || words[at + rowWord.cacheVersion] !== this.#version) return
    const to = words[at + rowWord.lent]!
    copyCache(this.#context.layout, this.#floats, { source, target: row, from: words[at + rowWord.cached]!, to })
    Atomics.store(words, at + rowWord.cached, to)
  }

  /** Drops cached positions that other weights computed, so that the weights of its version alone draw a token. */
  #keepCache(at: number): void {
    if (this.#words[at + rowWord.cacheVersion] !== this.#version) Atomics.store(this.#words, at + rowWord.cached, 0)
    this.#words[at + rowWord.cacheVersion] = this.#version
  }

  #start(at: number): void {
    this.#words[at + rowWord.reused] = this.#words[at + rowWord.cached]!
    Atomics.store(this.#words, at + rowWord.state, rowState.running)
  }

  #step(): void {
    const segments = this.#segments()
    feedTokens(this.#context, this.#scratch, this.#weights, segments)
    const complete: Segment[] = []
    for (const segment of segments) {
      const at = this.#row(segment.row)
      const cached = segment.position + segment.count
      Atomics.store(this.#words, at + rowWord.cached, cached)
      if (cached === this.#words[at + rowWord.length]) complete.push(segment)
    }
    if (complete.length === 0) return
    computeLogits(this.#context, this.#scratch, this.#weights, complete)
    complete.forEach((segment, index) => {
      this.#draw(segment.row, index)
    })
  }

  /** One token of every row that samples, and as much of the prompts as the step has room for, oldest first. */
  #segments(): Segment[] {
    const words = this.#words
    const { layout } = this.#context
    const { stepTokens } = layout.options.sampling
    const { contextLength } = layout.model
    const segments: Segment[] = []
    let room = stepTokens - this.#rows.length
    let offset = 0
    for (const row of this.#rows) {
      const at = this.#row(row)
      const position = words[at + rowWord.cached]!
      const count = Math.min(words[at + rowWord.length]! - position, 1 + room)
      room -= count - 1
      segments.push({ row, position, count, offset })
      const tokens = layout.sampler.tokens / 4 + row * contextLength + position
      words.copyWithin(this.#scratch.ids / 4 + offset, tokens, tokens + count)
      offset += count
    }
    return segments
  }

  /** Draws the next token of a row from the `index`-th row of logits. */
  #draw(row: number, index: number): void {
    const { kernels, layout } = this.#context
    const { model, sampler } = layout
    const { weights, result } = this.#scratch
    const words = this.#words
    const at = this.#row(row)
    const temperature = this.#floats[at + rowWord.temperature]!
    const length = words[at + rowWord.length]!
    const scale = temperature > 0 ? Math.fround(1 / temperature) : 1
    const drawn = length - words[at + rowWord.promptLength]!
    const u = temperature > 0 ? uniform(words[at + rowWord.randomHigh]!, words[at + rowWord.randomLow]!, drawn) : -1
    const logits = this.#scratch.logits + index * roundUp(model.vocabularySize, 8) * 4
    kernels.drawRow(model.vocabularySize, logits, weights, scale, u, result)
    const maximum = this.#floats[result / 4]!
    const total = this.#floats[result / 4 + 1]!
    let id = words[result / 4 + 2]!
    const topK = words[at + rowWord.topK]!
    const topP = this.#floats[at + rowWord.topP]!
    if (u >= 0 && (topK > 0 || topP < 1)) {
      id = drawTruncated(this.#floats.subarray(weights / 4, weights / 4 + model.vocabularySize), { topK, topP }, u)
    }
    const logprob = this.#floats[logits / 4 + id]! * scale - maximum - Math.log(total)
    if (!Number.isFinite(logprob)) {
      this.#remove(row)
      this.#finish(at, rowFinish.invalid)
      return
    }
    const place = row * model.contextLength + length
    words[sampler.tokens / 4 + place] = id
    this.#floats[sampler.logprobs / 4 + place] = logprob
    words[sampler.versions / 4 + place] = this.#version
    Atomics.store(words, at + rowWord.length, length + 1)
    Atomics.add(words, this.#thread + threadWord.sampled, 1)
    if (drawn === 0 && length > leastAwaited) this.#announce()
    if (this.#stopIds.has(id) || length + 1 >= words[at + rowWord.maxLength]!) {
      this.#remove(row)
      this.#finish(at, this.#stopIds.has(id) ? rowFinish.stop : rowFinish.length)
    } else if (words[at + rowWord.stepwise] === 1) {
      this.#remove(row)
      Atomics.store(words, at + rowWord.state, rowState.waiting)
      this.#announce()
    }
  }

  #remove(row: number): void {
    this.#rows = this.#rows.filter((other) => other !== row)
  }

  #finish(at: number, reason: number): void {
    this.#words[at + rowWord.finish] = reason
    Atomics.store(this.#words, at + rowWord.state, rowState.finished)
    this.#announce()
  }

  #announce(): void {
    Atomics.add(this.#words, this.#control + samplerWord.events, 1)
    Atomics.notify(this.#words, this.#control + samplerWord.events)
  }

  #row(row: number): number {
    return this.#context.layout.sampler.rows / 4 + row * rowWords
  }
}

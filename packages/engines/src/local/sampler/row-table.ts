import type { GenerateRequest, GenerateResult, WeightVersionSpan } from '@aworld-train/core'
import type { Views } from '../arena.ts'
import type { Layout } from '../layout.ts'
import { streamOf } from '../random.ts'
import { rowState, rowWord, rowWords, type SamplerLayout, samplerWord } from './sampler-layout.ts'

/** The start of a row. */
export interface RowStart {
  readonly thread: number
  /** Number of positions that its cache has already. */
  readonly cached: number
  /** Another row whose cache has more of them, or -1 for none, and their number. */
  readonly lender: number
  readonly lent: number
  readonly stepwise: boolean
}

/** The main thread's side of the rows: their words, tokens and caches in the shared memory. */
export class RowTable {
  readonly count: number
  readonly #layout: Layout
  readonly #sampler: SamplerLayout
  readonly #words: Int32Array
  readonly #floats: Float32Array

  constructor(layout: Layout, views: Views) {
    this.count = layout.options.sampling.rows
    this.#layout = layout
    this.#sampler = layout.sampler
    this.#words = views.i32
    this.#floats = views.f32
  }

  read(row: number, name: keyof typeof rowWord): number {
    return Atomics.load(this.#words, this.#at(row) + rowWord[name])
  }

  write(row: number, name: keyof typeof rowWord, value: number): void {
    Atomics.store(this.#words, this.#at(row) + rowWord[name], value)
  }

  /** Leading tokens of `prompt` whose keys and values row `row` holds for the published weights. */
  cachedPrefix(row: number, prompt: Int32Array): number {
    const version = this.#words[this.#sampler.control / 4 + samplerWord.version]
    if (this.read(row, 'cacheVersion') !== version) return 0
    const limit = Math.min(this.read(row, 'cached'), prompt.length - 1)
    const tokens = this.#tokens(row)
    let length = 0
    while (length < limit && this.#words[tokens + length] === prompt[length]) length++
    return length
  }

  /** Gives a row to a worker. */
  give(row: number, request: GenerateRequest, { thread, cached, lender, lent, stepwise }: RowStart): void {
    const { promptTokenIds: prompt, sampling, random } = request
    const { contextLength } = this.#layout.model
    const words = this.#words
    const at = this.#at(row)
    words[at + rowWord.lender] = lender
    words[at + rowWord.lent] = lent
    const [high, low] = streamOf([random.seed, sampling.seed, random.task, random.sample, random.turn])
    words.set(prompt, this.#tokens(row))
    words[at + rowWord.thread] = thread
    words[at + rowWord.promptLength] = prompt.length
    words[at + rowWord.length] = prompt.length
    words[at + rowWord.maxLength] = Math.min(contextLength, prompt.length + sampling.maxTokens)
    words[at + rowWord.cached] = cached
    words[at + rowWord.cacheVersion] = words[this.#sampler.control / 4 + samplerWord.version]!
    words[at + rowWord.cancelled] = 0
    words[at + rowWord.finish] = 0
    words[at + rowWord.reused] = 0
    words[at + rowWord.stepwise] = stepwise ? 1 : 0
    this.#floats[at + rowWord.temperature] = sampling.temperature
    this.#floats[at + rowWord.topP] = sampling.topP
    words[at + rowWord.topK] = sampling.topK
    words[at + rowWord.randomHigh] = high
    words[at + rowWord.randomLow] = low
    this.write(row, 'state', rowState.assigned)
  }

  /** Tokens drawn so far. */
  drawn(row: number): number {
    return this.read(row, 'length') - this.read(row, 'promptLength')
  }

  /** Ids, logprobs and weight versions of the drawn tokens from..to. */
  completion(row: number, from: number, to: number): Pick<GenerateResult, 'tokenIds' | 'logprobs' | 'weightVersions'> {
    const start = this.read(row, 'promptLength') + row * this.#layout.model.contextLength
    const { tokens, logprobs, versions } = this.#sampler
    const slice = <T extends Int32Array | Float32Array>(array: T, address: number): T =>
      array.slice(address / 4 + start + from, address / 4 + start + to) as T
    return {
      tokenIds: slice(this.#words, tokens),
      logprobs: slice(this.#floats, logprobs),
      weightVersions: toSpans(slice(this.#words, versions)),
    }
  }

  #at(row: number): number {
    return this.#sampler.rows / 4 + row * rowWords
  }

  #tokens(row: number): number {
    return this.#sampler.tokens / 4 + row * this.#layout.model.contextLength
  }
}

function toSpans(versions: Int32Array): WeightVersionSpan[] {
  const spans: WeightVersionSpan[] = []
  versions.forEach((version, index) => {
    if (spans.at(-1)?.version !== version) spans.push({ fromToken: index, version })
  })
  return spans
}

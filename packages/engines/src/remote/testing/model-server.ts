import type { ServerResponse } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { toyLogprob, toyModel, toyToken } from './toy-policy.ts'

export interface ToyDraw {
  readonly promptTokenIds: readonly number[]
  readonly maxTokens: number
  readonly temperature: number
  readonly seed: number
  readonly adapter: string | undefined
}

export interface ToySample {
  readonly id: number
  readonly logprob: number
  /** The server's name for the weights that drew it. */
  readonly label: string
}

/** The state and behaviour of a toy inference server, independent of the names of its routes. */
export interface ToyState {
  label: string
  /** The weights that sample. */
  weights: number
  readonly adapters: Map<string, number>
  paused: boolean
  /** Wait between tokens. */
  delayMs: number
  /** Yields the samples of a completion one by one; ends early when `signal` aborts. */
  draw(call: ToyDraw, signal: AbortSignal): AsyncGenerator<ToySample, 'stop' | 'length' | 'abort'>
  abortAll(): void
  running(): number
  /** Weights of a folder: the number after its last dash; `null` if there is none. */
  load(directory: string): number | null
}

export function createToyState(): ToyState {
  const cuts = new Set<AbortController>()
  const state: ToyState = {
    label: 'default',
    weights: 0,
    adapters: new Map(),
    paused: false,
    delayMs: 0,
    async *draw({ promptTokenIds, maxTokens, temperature, seed, adapter }, signal) {
      const cut = new AbortController()
      cuts.add(cut)
      try {
        for (let index = 0; index < maxTokens; index++) {
          if (state.delayMs > 0) await sleep(state.delayMs)
          while (state.paused && !cut.signal.aborted && !signal.aborted) await sleep(2)
          if (signal.aborted || cut.signal.aborted) return 'abort'
          const position = promptTokenIds.length + index
          const id = toyToken(seed, position)
          const weights = adapter === undefined ? state.weights : (state.adapters.get(adapter) ?? -1)
          yield { id, logprob: toyLogprob(weights, position, id, temperature), label: state.label }
          if (toyModel.stopTokenIds.includes(id)) return 'stop'
        }
        return 'length'
      } finally {
        cuts.delete(cut)
      }
    },
    abortAll() {
      for (const cut of cuts) cut.abort()
    },
    running: () => cuts.size,
    load: (directory) => {
      const found = /-(\d+)$/.exec(directory)?.[1]
      return found === undefined ? null : Number(found)
    },
  }
  return state
}

/** Spans of labels over samples. */
export function labelSpans(samples: readonly ToySample[]): { version: string; start: number; end: number }[] {
  const spans: { version: string; start: number; end: number }[] = []
  for (const [index, { label }] of samples.entries()) {
    const last = spans.at(-1)
    if (last?.version === label) last.end = index + 1
    else spans.push({ version: label, start: index, end: index + 1 })
  }
  return spans
}

/** Aborts when the client of a response disconnects. */
export function goneSignal(response: ServerResponse): AbortSignal {
  const gone = new AbortController()
  response.once('close', () => gone.abort())
  return gone.signal
}

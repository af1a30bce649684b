import type { Encoder } from './encoder.ts'
import type { TextTokenizer } from './tokenizer.ts'

/**
 * Texts with more characters together are encoded away from the event loop. 2,048 characters of English take 0.6 ms, measured with
 * byte-level vocabularies; of Chinese or of punctuation, the slowest tried, 2 ms. A message to the encoder and back takes 0.1 ms.
 */
const mostInlineCharacters = 2_048

/** Runs work on the event loop, at once or when its turn comes. */
export type RunWork = <T>(work: () => T) => T | Promise<T>

/** Options for preparing a prompt while others are prepared. */
export interface PrepareAsyncOptions {
  readonly encoder: Encoder
  /** Owner of the prompt, such as a session. Owners take turns at the encoder. */
  readonly owner: object
  readonly signal?: AbortSignal | undefined
  /** Runs every rendering. Default: at once. */
  readonly run?: RunWork | undefined
}

/**
 * Runs `prepare` with its long texts encoded by the encoder. `prepare` starts again when they are encoded, so it must not change anything.
 */
export async function prepareAsync<T>(
  prepare: () => T,
  { tokenizer, encoder, owner, signal, run = (work) => work() }: PrepareAsyncOptions & { readonly tokenizer: TextTokenizer },
): Promise<T> {
  const ready = new Map<string, Int32Array>()
  for (;;) {
    const outcome = await run(() => tokenizer.withReady(ready, mostInlineCharacters, prepare))
    if ('value' in outcome) return outcome.value
    const { missing: texts } = outcome
    const ids = await encoder.encode({ tokenizer: tokenizer.source, texts, owner, signal })
    for (const [index, text] of texts.entries()) ready.set(text, ids[index]!)
  }
}

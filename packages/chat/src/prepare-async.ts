import type { RenderWorker } from './render-worker.ts'
import type { TextTokenizer } from './tokenizer.ts'

/** Texts of more characters are encoded away from the event loop: 16 KB take about 8 ms. */
export const longText = 16_384

/**
 * Runs `prepare`, with the long texts in it encoded by the worker. `prepare` starts again for each of them, so it may not change anything;
 * what the worker does not give back in time is encoded here.
 */
export async function prepareAsync<T>(
  prepare: () => T,
  {
    tokenizer,
    worker,
    signal,
  }: { readonly tokenizer: TextTokenizer; readonly worker: RenderWorker; readonly signal?: AbortSignal | undefined },
): Promise<T> {
  const ready = new Map<string, Int32Array>()
  for (;;) {
    const outcome = tokenizer.withReady(ready, longText, prepare)
    if ('value' in outcome) return outcome.value
    const { missing } = outcome
    ready.set(missing, (await worker.encode(tokenizer.source, missing, signal)) ?? tokenizer.encode(missing))
  }
}

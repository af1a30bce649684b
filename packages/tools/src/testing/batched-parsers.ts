import { type ParserJail, ToolError } from '@aworld-train/core'
import type { ParserCall, default as parseMany } from './parse-many.ts'

/** A jail in which up to `size` simultaneous calls share a process. */
export function batchedParsers(jail: ParserJail, size: number): ParserJail {
  let batch: { readonly calls: ParserCall[]; readonly bytes: Uint8Array[]; readonly answers: ReturnType<typeof parseMany> } | null = null

  function openBatch(signal: AbortSignal) {
    const calls: ParserCall[] = []
    const bytes: Uint8Array[] = []
    const answers = new Promise<void>((resolve) => setImmediate(resolve)).then(() => {
      if (batch?.calls === calls) batch = null
      return jail.parse(new URL('./parse-many.ts', import.meta.url), Buffer.concat(bytes), calls, signal) as ReturnType<typeof parseMany>
    })
    return { calls, bytes, answers }
  }

  return {
    ...jail,
    async parse(module, bytes, options, signal) {
      batch ??= openBatch(signal)
      const { calls, answers } = batch
      const index = calls.length
      calls.push({ module: module.href, length: bytes.length, options })
      batch.bytes.push(bytes)
      if (calls.length === size) batch = null
      const answer = (await answers)[index]!
      if ('error' in answer) throw new ToolError(answer.error)
      return answer.value
    },
  }
}

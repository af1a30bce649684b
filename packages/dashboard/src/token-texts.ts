import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createTokenizer, type TextTokenizer } from '@aworld-train/chat'
import type { Message, PromptOrigin } from '@aworld-train/core'

/** Reads the texts of token ids of a run. */
export interface TokenTexts {
  /** Text of one token. Bytes that are no whole character are written as `\xe2`. `null` for an id outside the vocabulary. */
  text(id: number): string | null
  /** The message that contains the text of each prompt token. */
  origins(ids: ArrayLike<number>, messages: readonly Message[]): PromptOrigin[]
}

/** The texts of each policy's tokens in the run at `path`; `null` if its tokenizer is not there. Each of several policies has its own. */
export function readTokenTexts(path: string): (policy: string) => TokenTexts | null {
  const read = new Map<string, TokenTexts | null>()
  const cached = (folder: string) => {
    const texts = read.get(folder) ?? readFolder(folder)
    read.set(folder, texts)
    return texts
  }
  const kept = join(path, 'tokenizer')
  return (policy) => cached(join(kept, policy)) ?? cached(kept)
}

function readFolder(folder: string): TokenTexts | null {
  let files: readonly [string, string]
  try {
    files = [readFileSync(join(folder, 'tokenizer.json'), 'utf8'), readFileSync(join(folder, 'tokenizer_config.json'), 'utf8')]
  } catch {
    return null
  }
  return createTokenTexts(createTokenizer(files[0], JSON.parse(files[1]) as object))
}

function createTokenTexts(tokenizer: TextTokenizer): TokenTexts {
  const texts = new Map<number, string | null>()
  const strict = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
  const bytesOf = (id: number): Uint8Array => tokenizer.tokenBytes?.(id) ?? Buffer.from(tokenizer.decode([id], false))

  function read(id: number): string | null {
    if (tokenizer.tokenText(id) === null) return null
    const bytes = bytesOf(id)
    try {
      return strict.decode(bytes)
    } catch {
      return Array.from(bytes, (byte) => (byte < 0x80 ? String.fromCharCode(byte) : `\\x${byte.toString(16)}`)).join('')
    }
  }

  return {
    text(id) {
      const cached = texts.get(id)
      if (cached !== undefined) return cached
      const text = read(id)
      texts.set(id, text)
      return text
    },
    origins(ids, messages) {
      const pieces = Array.from(ids, bytesOf)
      const whole = Buffer.concat(pieces)
      let cursor = 0
      const spans = messages.flatMap(({ role, content }) => {
        const text = Buffer.from(content?.trim() ?? '')
        const start = text.length === 0 ? -1 : whole.indexOf(text, cursor)
        if (start < 0) return []
        cursor = start + text.length
        return [{ start, end: cursor, origin: role === 'developer' ? ('system' as const) : role }]
      })
      let end = 0
      let span = 0
      return pieces.map((piece) => {
        const start = end
        end += piece.length
        while (span < spans.length && spans[span]!.end <= start) span += 1
        const at = spans[span]
        return at && at.start < end && end > start ? at.origin : 'template'
      })
    },
  }
}

import { parentPort } from 'node:worker_threads'
import type { EncoderReply, EncoderRequest } from './encoder.ts'
import { createTokenizer, type TextTokenizer, type TokenizerSource } from './tokenizer.ts'

const sources = new Map<string, TokenizerSource>()
const tokenizers = new Map<string, TextTokenizer>()

parentPort?.on('message', (request: EncoderRequest) => {
  if (request.kind === 'tokenizer') {
    sources.set(request.source.hash, request.source)
    return
  }
  const reply = encode(request)
  parentPort?.postMessage(reply, 'ids' in reply ? reply.ids.map(({ buffer }) => buffer as ArrayBuffer) : [])
})

function encode({ hash, texts }: EncoderRequest & { kind: 'texts' }): EncoderReply {
  try {
    const tokenizer = tokenizerOf(hash)
    return { ids: texts.map((text) => tokenizer.encode(text).slice()) }
  } catch (error) {
    return { error: error instanceof Error ? error.message : String(error) }
  }
}

function tokenizerOf(hash: string): TextTokenizer {
  const { tokenizerText, config } = sources.get(hash)!
  const tokenizer = tokenizers.get(hash) ?? createTokenizer(tokenizerText, config)
  tokenizers.set(hash, tokenizer)
  return tokenizer
}

import { parentPort } from 'node:worker_threads'
import type { RenderWorkerReply, RenderWorkerRequest } from './render-worker.ts'
import { createTokenizer, type TextTokenizer } from './tokenizer.ts'

const tokenizers = new Map<string, TextTokenizer>()

parentPort?.on('message', (request: RenderWorkerRequest) => {
  if (request.kind === 'tokenizer') {
    tokenizers.set(request.hash, createTokenizer(request.tokenizerText, request.config))
    return
  }
  const ids = encode(request.hash, request.text)
  const reply: RenderWorkerReply = { id: request.id, ids }
  parentPort?.postMessage(reply, ids ? [ids.buffer as ArrayBuffer] : [])
})

function encode(hash: string, text: string): Int32Array | null {
  try {
    return tokenizers.get(hash)?.encode(text).slice() ?? null
  } catch {
    return null
  }
}

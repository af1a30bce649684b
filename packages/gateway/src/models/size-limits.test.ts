import type { ChatModel } from '@aworld-train/chat'
import type { TokenEngine } from '@aworld-train/core'
import { expect, test } from 'vitest'
import { createModelTable } from './model-table.ts'
import type { ModelRoute } from './routes.ts'
import { largestBodyBytes, maxPromptBytes } from './size-limits.ts'

const mebibyte = 1024 * 1024
const frozen: ModelRoute = { kind: 'frozen', baseUrl: 'http://127.0.0.1:1/v1', dialect: 'chat-completions', model: 'big' }
const token = (contextLength: number, bytes?: number | null): ModelRoute & { kind: 'token' } => ({
  kind: 'token',
  engine: { model: { contextLength, stopTokenIds: [] as readonly number[] } } as TokenEngine,
  chat: { historyNotes: [] as readonly string[] } as ChatModel,
  maxPromptBytes: bytes,
})

test('a prompt may have 16 bytes for each token of context, or what its route says', () => {
  expect([token(2_048), token(2_048, null), token(2_048, 50_000)].map(maxPromptBytes)).toEqual([32_768, 32_768, 50_000])
})

test('a body may have 8 times the largest prompt and at least 1 MiB; more only where a model renders itself', () => {
  const cases: readonly (readonly [Record<string, ModelRoute>, number])[] = [
    [{ a: token(2_048) }, mebibyte],
    [{ a: token(32_768) }, 4 * mebibyte],
    [{ a: token(2_048, mebibyte) }, 8 * mebibyte],
    [{ a: token(2_048), b: token(131_072) }, 16 * mebibyte],
    [{ a: token(2_048), judge: frozen }, 64 * mebibyte],
  ]
  for (const [models, bytes] of cases) expect(largestBodyBytes(createModelTable({ models }))).toBe(bytes)
})

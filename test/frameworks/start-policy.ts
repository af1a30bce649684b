import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { loadChatModel } from '@aworld-train/chat'
import type { RandomKey } from '@aworld-train/core'
import { createGateway, type Gateway } from '@aworld-train/gateway'
import { type ScriptedEngine, scriptedEngine, writeTinyModel } from '@aworld-train/testing'

export interface Policy extends AsyncDisposable {
  readonly gateway: Gateway
  readonly engine: ScriptedEngine
  /** Ids of a text and the stop token behind it. */
  idsOf(text: string): readonly number[]
}

/** What the policy says to a prompt, with the key of its random numbers. */
export type Say = (prompt: string, random: RandomKey) => string

/** A gateway on a real port before a policy of Qwen3's format that says `texts` in order, or what a prompt is answered with; an error is thrown instead. */
export async function startPolicy(texts: readonly (string | Error)[] | Say): Promise<Policy> {
  const directory = await mkdtemp(join(tmpdir(), 'frameworks-'))
  const template = await readFile(new URL('../../packages/chat/fixtures/formats/qwen3.jinja', import.meta.url), 'utf8')
  const model = await writeTinyModel({ directory, template, name: 'policy', contextLength: 262_144 })
  const chat = await loadChatModel({ directory, stopTokenIds: model.stopTokenIds })
  const idsOf = (text: string) => [...chat.encode(text), ...model.stopTokenIds]
  const engine = scriptedEngine({
    model,
    script({ promptTokenIds, random }, call) {
      if (typeof texts === 'function') return { tokenIds: idsOf(texts(chat.decode(promptTokenIds), random)) }
      const text = texts[call] ?? new Error(`The agent called ${call + 1} times; ${texts.length} were expected.`)
      if (text instanceof Error) throw text
      return { tokenIds: idsOf(text) }
    },
  })
  const gateway = await createGateway({ models: { policy: { kind: 'token', engine, chat } }, aliases: { '*': 'policy' }, seed: 1 })
  return {
    gateway,
    engine,
    idsOf,
    async [Symbol.asyncDispose]() {
      await gateway.close()
      await engine.close()
      await rm(directory, { recursive: true })
    },
  }
}

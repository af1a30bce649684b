import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { chatMlTemplate, loadChatModel } from '@aworld-train/chat'
import type { TokenEngine } from '@aworld-train/core'
import { createGateway } from '@aworld-train/gateway'
import { callText, turns } from './workload.ts'
import { writeWordModel } from './write-word-model.ts'

/** What this process answers over IPC, one reply a request, in order. */
export type Command =
  | { readonly do: 'open'; readonly rollout: string }
  | { readonly do: 'close' }
  | { readonly do: 'cpu' }
  | { readonly do: 'stop' }
export interface Reply {
  readonly url?: string
  /** User and system time of the whole process, in microseconds. */
  readonly cpu?: number
  /** Tokens of the longest prompt, and turns that were continued and not. */
  readonly longest?: number
  readonly continued?: number
  readonly branched?: number
}

interface Served {
  open(rollout: string): string
  /** Ends all sessions. */
  clear(): Promise<Reply>
  close(): Promise<void>
}

/** Samples what it is told to, at once and in pieces, and keeps nothing. */
function sayingEngine(model: TokenEngine['model'], idsOf: (turn: number) => Int32Array): TokenEngine {
  let sampled = 0
  return {
    name: 'saying',
    model,
    async generate({ random, onTokens }) {
      const tokenIds = idsOf(random.turn)
      const logprobs = new Float32Array(tokenIds.length).fill(-0.5)
      for (let from = 0; from < tokenIds.length; from += pieceTokens) {
        onTokens?.(tokenIds.subarray(from, from + pieceTokens), logprobs.subarray(from, from + pieceTokens), 0)
      }
      sampled += tokenIds.length
      return {
        tokenIds,
        logprobs,
        finishReason: { unified: 'stop', raw: 'stop' },
        weightVersions: [{ fromToken: 0, version: 0 }],
        cachedTokens: 0,
      }
    },
    weightVersion: () => 0,
    sampledTokens: () => sampled,
    close: async () => {},
  }
}

const pieceTokens = 8

async function serveGateway(context: number): Promise<Served> {
  const directory = await mkdtemp(join(tmpdir(), 'aworld-train-token-in-'))
  const model = await writeWordModel(directory, chatMlTemplate, context)
  const chat = await loadChatModel({ directory, stopTokenIds: model.stopTokenIds })
  const completions = Array.from({ length: turns + 1 }, (_, turn) => Int32Array.of(...chat.encode(callText(turn)), ...model.stopTokenIds))
  const engine = sayingEngine(model, (turn) => completions[(turn + 1) % completions.length]!)
  const gateway = await createGateway({ models: { policy: { kind: 'token', engine, chat } }, seed: 1 })
  let sessions: ReturnType<typeof gateway.open>[] = []
  return {
    open(rollout) {
      const session = gateway.open({
        rollout,
        attempt: 0,
        taskId: 'task',
        sample: 0,
        policy: 'policy',
        sampling: { temperature: 1, topP: 1, topK: 0, maxTokens: 1024, stop: [], seed: 0 },
        agents: [{ name: 'agent', trainable: true }],
      })
      sessions.push(session)
      return `${session.endpoint('agent').baseUrl}/chat/completions`
    },
    async clear() {
      const records = await Promise.all(sessions.map((session) => session.close()))
      sessions = []
      const recorded = records.flatMap((trajectories) => trajectories.flatMap((trajectory) => trajectory.turns))
      return {
        longest: recorded.reduce((most, turn) => Math.max(most, turn.promptTokenIds.length), 0),
        continued: recorded.filter(({ parent }) => parent !== null).length,
        branched: recorded.filter(({ parent }) => parent === null).length,
      }
    },
    async close() {
      await gateway.close()
      await engine.close()
      await rm(directory, { recursive: true })
    },
  }
}

/** The least that any gateway which reads messages does: receives the body, parses it, and answers. */
async function serveEcho(): Promise<Served> {
  const answer = JSON.stringify({
    choices: [
      { message: { role: 'assistant', content: null, tool_calls: [{ id: 'c', function: { name: 'search', arguments: callText(1) } }] } },
    ],
  })
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const body = JSON.parse(Buffer.concat(chunks).toString()) as { messages: unknown[] }
      response.writeHead(200, { 'content-type': 'application/json', 'x-messages': body.messages.length })
      response.end(answer)
    })
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  const { port } = server.address() as AddressInfo
  return {
    open: () => `http://127.0.0.1:${port}/`,
    clear: async () => ({}),
    async close() {
      server.closeAllConnections()
      await new Promise((done) => server.close(done))
    },
  }
}

const [kind, context] = process.argv.slice(2)
const served = kind === 'echo' ? await serveEcho() : await serveGateway(Number(context))

async function carryOut(command: Command): Promise<Reply> {
  if (command.do === 'open') return { url: served.open(command.rollout) }
  if (command.do === 'close') return await served.clear()
  if (command.do === 'stop') await served.close()
  const { user, system } = process.cpuUsage()
  return { cpu: user + system }
}

process.on('message', async (command: Command) => {
  const reply = await carryOut(command)
  process.send?.(reply, undefined, undefined, () => {
    if (command.do === 'stop') process.disconnect()
  })
})
process.send?.({})

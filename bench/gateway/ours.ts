// Our gateway in a process of its own, before a vLLM server, with its recorder and a run store that every turn is durable in.
// Prints the paths of its first sessions; more are opened and closed over a second port.
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer, type IncomingMessage } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { parseArgs } from 'node:util'
import { chatMlTemplate, loadChatModel } from '@aworld-train/chat'
import type { PolicySession, RolloutRequest, Sampling } from '@aworld-train/core'
import { createVllmChatEngine, createVllmTokenEngine } from '@aworld-train/engines/remote'
import { createGateway, type ModelRoute } from '@aworld-train/gateway'
import { openRunStore } from '@aworld-train/store'
import { writeTinyModel } from '@aworld-train/testing'

const { values } = parseArgs({
  options: {
    upstream: { type: 'string' },
    mode: { type: 'string', default: 'pass-through' },
    sessions: { type: 'string', default: '0' },
    kept: { type: 'string' },
    connections: { type: 'string', default: '64' },
  },
})
/** Turns of a first session that are kept; all of them where absent, as in a rollout. */
const turnsKept = values.kept === undefined ? undefined : Number(values.kept)
const sampling: Sampling = { temperature: 1, topP: 1, topK: 0, maxTokens: 512, stop: [], seed: 0 }

await using stack = new AsyncDisposableStack()
const directory = stack.adopt(await mkdtemp(join(tmpdir(), 'bench-gateway-')), (each) => rm(each, { recursive: true, force: true }))
const store = stack.adopt(await openRunStore({ path: join(directory, 'run'), thread: true }), (each) => each.close())
const replicas = [values.upstream!]
const contextLength = 131_072

async function route(): Promise<ModelRoute> {
  if (values.mode === 'pass-through') {
    const engine = await createVllmChatEngine({
      replicas,
      model: { name: 'bench', contextLength },
      maxInFlight: Number(values.connections),
    })
    stack.adopt(engine, (each) => each.close())
    return { kind: 'chat', engine }
  }
  const model = await writeTinyModel({ directory: join(directory, 'model'), template: chatMlTemplate, contextLength })
  const chat = await loadChatModel({ directory: model.directory, stopTokenIds: model.stopTokenIds })
  const engine = stack.adopt(await createVllmTokenEngine({ replicas, model, maxInFlight: Number(values.connections) }), (each) =>
    each.close(),
  )
  return { kind: 'token', engine, chat }
}

const gateway = stack.adopt(await createGateway({ models: { bench: await route() }, seed: 1 }), (each) => each.close())

const requestOf = (key: string): RolloutRequest => ({
  version: 1,
  key,
  task: { version: 1, id: key, hash: key, input: 'bench', data: {}, dataSource: 'bench', extraInfo: {} },
  group: key,
  sample: 0,
  split: 'train',
  policy: 'bench',
  sampling,
  limits: {},
})

async function openSession(name: string, maxKeptTurns?: number): Promise<PolicySession> {
  let attempt = (await store.begin(requestOf(name))).attempt
  let begun = false
  return gateway.open({
    rollout: name,
    attempt: 0,
    taskId: name,
    sample: 0,
    policy: 'bench',
    sampling,
    agents: [{ name: 'agent', trainable: true }],
    maxKeptTurns,
    async onTurn(agent, turn) {
      // A session that goes on for ever is a new attempt of its rollout where its record begins anew.
      if (begun && turn.index === 0) attempt = (await store.begin(requestOf(name))).attempt
      begun = true
      await store.appendTurn(name, attempt, agent, turn)
    },
  })
}

const pathOf = (session: PolicySession) => `${new URL(session.endpoint('agent').baseUrl).pathname}/chat/completions`

const first: PolicySession[] = []
for (let index = 0; index < Number(values.sessions); index++) first.push(await openSession(`first-${index}`, turnsKept))

async function readJson(request: IncomingMessage): Promise<{ rollout: string }> {
  let text = ''
  for await (const chunk of request) text += chunk
  return JSON.parse(text || '{}') as { rollout: string }
}

const sessions = new Map<string, PolicySession>()
let generation = 0
const delay = monitorEventLoopDelay({ resolution: 1 })
delay.enable()

async function control(path: string, request: IncomingMessage): Promise<string> {
  const { rollout } = await readJson(request)
  if (path === '/open') {
    const session = await openSession(`${rollout}/${++generation}`)
    sessions.set(rollout, session)
    return pathOf(session)
  }
  if (path === '/close') {
    await sessions.get(rollout)?.close()
    sessions.delete(rollout)
    return ''
  }
  const { rss, heapUsed, external } = process.memoryUsage()
  const p99 = delay.percentile(99) / 1e6
  if (path === '/reset') delay.reset()
  if (path === '/collect') globalThis.gc?.()
  return JSON.stringify({ rss, heapUsed, external, eventLoopDelayP99: p99, counts: gateway.counts() })
}

const server = createServer((request, response) => {
  void control(request.url ?? '', request).then(
    (text) => response.end(text),
    (error) => response.writeHead(500).end(String(error)),
  )
})
server.keepAliveTimeout = 120_000
stack.defer(() => {
  server.closeAllConnections()
  server.close()
})
await new Promise<void>((resolve) => server.listen({ host: '127.0.0.1', port: 0, backlog: 8192 }, resolve))
const address = server.address()
const line = {
  port: Number(new URL(gateway.url).port),
  controlPort: typeof address === 'object' && address ? address.port : 0,
  paths: first.map(pathOf),
}
process.stdout.write(`${JSON.stringify(line)}\n`)
await new Promise<void>((resolve) => process.once('SIGTERM', () => resolve()))

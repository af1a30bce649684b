import { once } from 'node:events'
import {
  type AgentDeclaration,
  type AgentProgram,
  type AttemptExecutor,
  type RolloutRequest,
  type RunEvent,
  type WorkerEnvironment,
  workerProtocol,
  workersPath,
} from '@aworld-train/core'
import { WebSocket } from 'ws'
import { createAttemptExecutor } from '../attempt-executor.ts'
import type { InProcessRolloutRunner } from '../rollout-options.ts'
import { createRolloutRunner } from '../rollout-runner.ts'
import { createRolloutServer } from '../service/rollout-server.ts'
import { createRolloutService } from '../service/rollout-service.ts'
import { memoryEnvironment } from '../testing/memory-environment.ts'
import { memoryGateway } from '../testing/memory-gateway.ts'
import { memoryStore } from '../testing/memory-store.ts'
import { exactReward, program } from '../testing/rollout-fixtures.ts'
import type { AgentIdentity } from './agent-identity.ts'
import { runWorker, type WorkerOptions } from './run-worker.ts'
import { createWorkerPool, type WorkerPoolOptions } from './worker-pool.ts'
import type { WorkerPoolLimits } from './worker-pool-limits.ts'

/** The outcome of an agent that answered "yes" and called no tool. */
export const outcome = {
  end: { kind: 'answered', answer: 'yes', messages: [] },
  aborted: null,
  environmentFailure: null,
  invocations: [],
  toolCalls: [],
  toolErrors: 0,
  functionCalls: 0,
  problems: [],
  timing: { startedAt: 1, endedAt: 2 },
}

/** Token of workers. */
export const token = 'secret'
/** Token of clients. */
export const clientToken = 'of clients'

/** The agent of every worker. */
export const testAgent: AgentIdentity = { hash: 'agent-1', parts: { 'agent.ts': 'a', 'package zod': '4.1.0' } }

export interface CoordinatorSetup {
  /** The agent; by default it asks its policy once. */
  readonly agent?: (
    ask: (agent?: string) => Promise<string | null>,
    context: Parameters<AgentProgram['run']>[1],
    request: string,
  ) => Promise<string | null>
  /** Members of a swarm; one agent by default. */
  readonly agents?: readonly AgentDeclaration[]
  readonly limits?: Partial<WorkerPoolLimits>
  readonly concurrency?: number
  readonly environment?: WorkerEnvironment
  readonly fileOf?: WorkerPoolOptions['fileOf']
}

/** A coordinator behind a real port, whose agents run at workers only. */
export async function startCoordinator(setup: CoordinatorSetup = {}) {
  const { agent = (ask) => ask(), agents: members, limits, concurrency = 64, environment, fileOf } = setup
  const warnings: { readonly code: string; readonly message: string }[] = []
  const events: RunEvent[] = []
  const gateway = memoryGateway(() => ({ content: 'yes' }))
  const store = memoryStore()
  const agents = program(async (task, context) => {
    const ask = async (name?: string) =>
      (await gateway.call(context.policy(name), [{ role: 'user', content: 'Go on.' }], context.signal)).content
    return { answer: await agent(ask, context, task.id), messages: [] }
  }, members)
  const pool = createWorkerPool({
    agent: testAgent,
    environment,
    fileOf,
    limits,
    onWarning: (warning) => warnings.push(warning),
  })
  const opened = Promise.withResolvers<InProcessRolloutRunner>()
  const service = createRolloutService({
    store,
    openRunner(onEvent) {
      const runner = createRolloutRunner({
        program: { agents: agents.agents, run: () => Promise.reject(new Error('The agent ran beside its coordinator.')) },
        gateway,
        environment: memoryEnvironment(),
        workers: pool,
        reward: exactReward(),
        store,
        answerKey: (taskId) => ({ version: 1, taskId, groundTruth: 'yes' }),
        concurrency,
        onEvent(event) {
          events.push(event)
          onEvent(event)
        },
      })
      opened.resolve(runner)
      return runner
    },
  })
  const runner = await opened.promise
  const server = await createRolloutServer({ service, token: clientToken, workers: { pool, token } })

  /** Runs a worker in this process. */
  function work(overrides: Partial<WorkerOptions> & { readonly wrap?: (executor: AttemptExecutor) => AttemptExecutor } = {}) {
    const drain = new AbortController()
    const { wrap = (executor) => executor, ...options } = overrides
    const { baseDirectory } = options
    const executor = wrap(createAttemptExecutor({ program: agents, environment: memoryEnvironment(), baseDirectory, abandonAfterMs: 50 }))
    const states: string[] = []
    const ended = runWorker({
      url: server.url,
      token,
      name: 'worker',
      slots: 2,
      agent: testAgent,
      openExecutor: () => executor,
      signal: drain.signal,
      waitMs: 500,
      onState: (state) => states.push(state),
      ...options,
    })
    ended.catch(() => {})
    return { drain: () => drain.abort(), ended, states }
  }

  /** Counts of workers and rollouts. */
  function counts() {
    const rows = runner.workers.rows()
    const connected = rows.filter(({ status }) => status === 'connected' || status === 'draining')
    const sum = (numbers: readonly number[]) => numbers.reduce((total, number) => total + number, 0)
    return {
      workers: connected.length,
      slots: sum(connected.map(({ slots }) => slots)),
      waiting: runner.counts().queued,
      assigned: sum(rows.map(({ assignments }) => assignments.length)),
      lostAttempts: sum(rows.map(({ lostAttempts }) => lostAttempts)),
    }
  }

  return {
    counts,
    runner,
    pool,
    service,
    server,
    store,
    gateway,
    warnings,
    events,
    work,
    run(request: RolloutRequest, signal = AbortSignal.timeout(20_000)) {
      service.submit(request)
      return service.wait(request.key, { signal })
    },
    async [Symbol.asyncDispose]() {
      pool.close()
      await server.close()
      await service.close()
    },
  }
}

/** A worker that sends the test's messages over a plain socket. */
export async function plainWorker(url: string, hello: object = {}) {
  const socket = new WebSocket(url.replace('http', 'ws') + workersPath, { headers: { authorization: `Bearer ${token}` } })
  await once(socket, 'open')
  const received: Record<string, unknown>[] = []
  socket.on('message', (data) => received.push(JSON.parse(String(data))))
  const say = (message: object) => socket.send(JSON.stringify(message))
  const base = {
    type: 'hello',
    protocol: workerProtocol,
    name: 'plain',
    incarnation: '1',
    slots: 1,
    agentHash: testAgent.hash,
    agentParts: testAgent.parts,
    holding: [],
    draining: false,
  }
  say({ ...base, ...hello })
  return { socket, received, say, of: (type: string) => received.filter((message) => message['type'] === type) }
}

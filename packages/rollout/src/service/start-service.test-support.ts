import type { AgentProgram } from '@aworld-train/core'
import { createRolloutRunner } from '../rollout-runner.ts'
import { memoryEnvironment } from '../testing/memory-environment.ts'
import { memoryGateway } from '../testing/memory-gateway.ts'
import { type MemoryStore, memoryStore } from '../testing/memory-store.ts'
import { exactReward, program } from '../testing/rollout-fixtures.ts'
import { createRolloutClient, type RolloutClient, type RolloutClientOptions } from './rollout-client.ts'
import { createRolloutServer, type RolloutServer, type RolloutServerOptions } from './rollout-server.ts'
import { createRolloutService, type RolloutService, type RolloutServiceLimits, type RolloutServiceOptions } from './rollout-service.ts'

export interface ServiceSetting {
  /** The agent; by default it asks the policy once and returns that answer. */
  readonly run?: AgentProgram['run']
  /** Awaited before that agent asks. */
  readonly before?: (...input: Parameters<AgentProgram['run']>) => Promise<void>
  readonly concurrency?: number
  readonly limits?: Partial<RolloutServiceLimits>
  readonly store?: MemoryStore
  readonly check?: RolloutServiceOptions['check']
}

/** A rollout that ends only with its signal. */
export const forever: AgentProgram['run'] = (_, { signal }) =>
  new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason)))

/** A rollout service with a real runner, without sockets. */
export function startService({ run, before, concurrency = 2, limits, store = memoryStore(), check }: ServiceSetting = {}) {
  const gateway = memoryGateway(() => ({ content: 'Right.' }))
  const answer: AgentProgram['run'] = async (task, context) => {
    await before?.(task, context)
    const messages = [{ role: 'user' as const, content: String(task.input) }]
    const message = await gateway.call(context.policy('agent'), messages, context.signal)
    return { answer: message.content, messages: [...messages, message] }
  }
  const service: RolloutService = createRolloutService({
    store,
    limits,
    check,
    openRunner: (onEvent) =>
      createRolloutRunner({
        program: program(run ?? answer),
        gateway,
        environment: memoryEnvironment(),
        reward: exactReward(),
        store,
        answerKey: (taskId) => ({ version: 1, taskId, groundTruth: null }),
        concurrency,
        onEvent,
      }),
  })
  return { service, store, answer }
}

export interface Served extends AsyncDisposable {
  readonly service: RolloutService
  readonly server: RolloutServer
  readonly client: RolloutClient
}

/** The same service behind a real port, with a client. */
export async function serveService(
  setting: ServiceSetting = {},
  options: Omit<RolloutServerOptions, 'service'> = {},
  clientOptions: Partial<RolloutClientOptions> = {},
): Promise<Served> {
  const { service } = startService(setting)
  const server = await createRolloutServer({ service, ...options })
  const client = createRolloutClient({ url: server.url, token: options.token, ...clientOptions })
  return {
    service,
    server,
    client,
    async [Symbol.asyncDispose]() {
      await client.close()
      await server.close()
      await service.close()
    },
  }
}

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { chatMlTemplate, loadChatModel } from '@aworld-train/chat'
import type { AgentProgram, ChannelHello, Message, PolicyGateway, Reward } from '@aworld-train/core'
import { writeTinyModel } from '@aworld-train/testing'
import { createRolloutRunner } from '../rollout-runner.ts'
import { createRolloutServer } from '../service/rollout-server.ts'
import { createRolloutService } from '../service/rollout-service.ts'
import { memoryEnvironment } from '../testing/memory-environment.ts'
import { type MemoryGateway, memoryGateway } from '../testing/memory-gateway.ts'
import { type MemoryStore, memoryStore } from '../testing/memory-store.ts'
import { exactReward, program } from '../testing/rollout-fixtures.ts'
import {
  connectTrainerClient,
  type Sampled,
  type TrainerClient,
  type TrainerClientCall,
  type TrainerClientOptions,
} from '../testing/trainer-client.ts'
import { createChannelAnswers } from './channel-answers.ts'
import { createChannelEngine } from './channel-engine.ts'
import { createChannelServer } from './channel-server.ts'
import type { ChannelOutcome } from './channel-tally.ts'
import type { ChannelEngine, ChannelServerOptions, ChannelWarning, ToTask } from './channel-types.ts'

export const token = 'secret'

/** The conversation that every hello here is checked with. */
export const checkMessages = [{ role: 'user', content: 'Hello.' }]

/** Folder of a tiny model, and the ids that a trainer client with it renders for its hello. */
export async function writeModel(): Promise<{ directory: string; renderedIds: Int32Array } & AsyncDisposable> {
  const directory = await mkdtemp(join(tmpdir(), 'channel-test-'))
  await writeTinyModel({ directory, template: chatMlTemplate })
  const chat = await loadChatModel({ directory, stopTokenIds: [257] })
  const renderedIds = chat
    .createConversation()
    .prepare({ messages: checkMessages as Message[], tools: [] })
    .promptTokenIds.slice()
  return { directory, renderedIds, [Symbol.asyncDispose]: () => rm(directory, { recursive: true }) }
}

export const toTask: ToTask = ({ prompt, rewardModel }, { uid }) => ({
  task: {
    version: 1,
    id: uid,
    hash: uid,
    input: prompt.map(({ content }) => String(content)).join('\n'),
    data: {},
    dataSource: 'test',
    extraInfo: {},
  },
  answer: { version: 1, taskId: uid, groundTruth: (rewardModel as { ground_truth?: unknown } | undefined)?.ground_truth ?? null },
})

/** A gateway whose calls go to `engine` with made-up prompts. */
function engineGateway(engine: ChannelEngine): MemoryGateway {
  return memoryGateway((_, { rollout, attempt, sampling }) => ({
    content: 'sampled',
    generate: (promptTokenIds, agent, turn, signal) =>
      engine.generate(
        {
          promptTokenIds,
          sampling,
          random: { seed: 0, task: rollout, sample: 0, turn },
          affinity: `${rollout}.${attempt}`,
          origin: { rollout, attempt, agent, trajectory: agent },
        },
        signal,
      ),
  }))
}

export interface ChannelSetting
  extends Partial<Pick<ChannelServerOptions, 'rows' | 'reward' | 'ownReward' | 'graceMs' | 'limits' | 'rolloutTimeoutMs' | 'toTask'>> {
  /** The agent; by default it asks the policy `calls` times. */
  readonly run?: (gateway: MemoryGateway) => AgentProgram['run']
  readonly calls?: number
  readonly concurrency?: number
  readonly store?: MemoryStore
  readonly directory?: string | null
  readonly filesDirectory?: string
  readonly score?: Reward | null
  readonly retries?: number
  readonly port?: number
}

/** A service with a channel behind a real port. */
export async function startChannel(model: { readonly directory: string; readonly renderedIds: Int32Array }, setting: ChannelSetting = {}) {
  const {
    run,
    calls = 1,
    concurrency = 4,
    store = memoryStore(),
    directory = model.directory,
    filesDirectory,
    score,
    retries = 0,
    port,
  } = setting
  const outcomes: ChannelOutcome[] = []
  const warnings: ChannelWarning[] = []
  const answers = createChannelAnswers()
  const engine = createChannelEngine({ name: 'policy', directory, filesDirectory, onWarning: (warning) => void warnings.push(warning) })
  const gateway = engineGateway(engine)
  const ask: AgentProgram['run'] = async (task, context) => {
    const messages: Message[] = [{ role: 'user', content: String(task.input) }]
    for (let call = 0; call < calls; call++) messages.push(await gateway.call(context.policy('agent'), messages, context.signal))
    return { answer: messages.at(-1)!.content, messages }
  }
  const service = createRolloutService({
    store,
    openRunner: (onEvent) =>
      createRolloutRunner({
        program: program(run?.(gateway) ?? ask, [{ name: 'agent', trainable: true }]),
        gateway: gateway as PolicyGateway,
        environment: memoryEnvironment(),
        reward: score === undefined ? exactReward() : score,
        store,
        answerKey: answers.answerKey,
        concurrency,
        retries,
        onEvent,
      }),
  })
  const { rows, reward, ownReward, graceMs, limits, rolloutTimeoutMs } = setting
  const channel = createChannelServer({
    service,
    engine,
    store,
    answers,
    toTask: setting.toTask ?? toTask,
    rows,
    reward,
    ownReward,
    graceMs,
    limits,
    rolloutTimeoutMs,
    onOutcome: (outcome) => void outcomes.push(outcome),
    onWarning: (warning) => void warnings.push(warning),
  })
  const server = await createRolloutServer({ service, channel, token, port })
  const clients: TrainerClient[] = []
  return {
    server,
    service,
    channel,
    engine,
    gateway,
    store,
    answers,
    outcomes,
    warnings,
    async connect(options: Partial<Omit<TrainerClientOptions, 'hello'>> & { hello?: Partial<ChannelHello> } = {}): Promise<TrainerClient> {
      const client = await connectTrainerClient({
        url: server.url,
        token,
        sample: () => sampled,
        renderedIds: model.renderedIds,
        ...options,
      })
      clients.push(client)
      return client
    },
    async [Symbol.asyncDispose]() {
      for (const client of clients) client.terminate()
      await server.close()
      await channel.close()
      await service.close()
      await engine.close()
    },
  }
}

/** The tokens of "ok", and the stop token. */
export const sampled: Sampled = { ids: [111, 107, 257], logprobs: [-0.1, -0.2, -0.3] }

/** Waits until `condition` holds, at most a minute. */
export async function until(condition: () => boolean): Promise<void> {
  const deadline = Date.now() + 60_000
  while (!condition()) {
    if (Date.now() > deadline) throw new Error('The condition did not come true within a minute.')
    await new Promise((resolve) => setTimeout(resolve, 2))
  }
}

/** A sampler whose answers wait until the test releases them. */
export function heldSampler() {
  const calls: TrainerClientCall[] = []
  const gate = Promise.withResolvers<Sampled>()
  return {
    calls,
    release: gate.resolve,
    sample: (call: TrainerClientCall) => {
      calls.push(call)
      return gate.promise
    },
  }
}

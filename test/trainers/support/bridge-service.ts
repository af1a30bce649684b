// A rollout service with a channel, every part real, for an agent that asks its model a given number of times.
// Arguments: one JSON object, see `Setting`. It prints {url} once it serves.
import { channelPath, type RewardOutput } from '@aworld-train/core'
import { createEnvironment } from '@aworld-train/environment'
import { createGateway } from '@aworld-train/gateway'
import {
  createChannelAnswers,
  createChannelEngine,
  createChannelServer,
  createRolloutRunner,
  createRolloutServer,
  createRolloutService,
} from '@aworld-train/rollout'
import { openRunStore } from '@aworld-train/store'

interface Setting {
  /** Run directory; the same one again after a kill. */
  readonly path: string
  readonly port: number
  readonly token: string
  /** The model's folder, or null where its files come over the channel. */
  readonly directory: string | null
  readonly turns: number
  /** Each turn beside the conversation asks once for itself, so that a rollout has several rows. */
  readonly asides?: boolean
  readonly rolloutTimeoutMs?: number
  readonly rows?: 'all' | 'last' | 'longest'
  /** `length`: more for a longer answer; else one half. */
  readonly reward?: 'service' | 'native' | 'length'
}

const setting: Setting = JSON.parse(process.argv[2]!)
const { path, port, token, directory, turns, asides = false, rolloutTimeoutMs = 60_000, rows = 'all', reward = 'service' } = setting

interface WireMessage {
  readonly role: string
  readonly content: string | null
}

const store = await openRunStore({ path })
const engine = createChannelEngine({ name: 'policy', directory, filesDirectory: `${path}/tokenizer` })
const gateway = await createGateway({
  models: { policy: { kind: 'token', engine, chat: () => engine.chat() } },
  aliases: { '*': 'policy' },
  seed: 1,
})
const environment = createEnvironment({ baseDirectory: path })
const answers = createChannelAnswers()
const service = createRolloutService({
  store,
  openRunner: (onEvent) =>
    createRolloutRunner({
      program: {
        agents: [{ name: 'agent', trainable: true }],
        async run(task, context) {
          const { baseUrl } = context.policy()
          const ask = async (messages: readonly WireMessage[]): Promise<WireMessage> => {
            const response = await fetch(`${baseUrl}/chat/completions`, {
              method: 'POST',
              headers: { 'content-type': 'application/json' },
              body: JSON.stringify({ model: 'any', messages, max_tokens: 16 }),
              signal: context.signal,
            })
            if (!response.ok) throw new Error(`status ${response.status}: ${await response.text()}`)
            return ((await response.json()) as { choices: { message: WireMessage }[] }).choices[0]!.message
          }
          const input = typeof task.input === 'string' ? task.input : String(task.input.at(-1)?.content)
          if (input.includes('throws')) throw new Error('the agent threw')
          if (input.includes('asks nothing')) return { answer: 'nothing', messages: [] }
          if (input.includes('hangs'))
            await new Promise((_, reject) => context.signal.addEventListener('abort', () => reject(context.signal.reason)))
          const messages: WireMessage[] = [{ role: 'user', content: input }]
          for (let turn = 0; turn < turns; turn++) {
            const [answer] = await Promise.all([ask(messages), ...(asides ? [ask([{ role: 'user', content: `Aside ${turn}.` }])] : [])])
            messages.push(answer, { role: 'user', content: 'Go on.' })
          }
          return { answer: messages.at(-2)?.content ?? null, messages: [] }
        },
      },
      gateway,
      environment,
      reward:
        reward === 'native'
          ? null
          : {
              name: reward,
              async score({ episode }): Promise<RewardOutput> {
                const isLonger = reward === 'length' && episode.answer !== null
                return isLonger ? { reward: Math.min(1, episode.answer!.length / 40), scores: {} } : { reward: 0.5, scores: { exact: 1 } }
              },
              close: async () => {},
            },
      store,
      answerKey: (taskId) => answers.answerKey(taskId),
      concurrency: 64,
      limits: { timeoutMs: rolloutTimeoutMs },
      onEvent,
    }),
})
const channel = createChannelServer({
  service,
  engine,
  store,
  answers,
  rows,
  reward: reward === 'native' ? 'native' : 'service',
  rolloutTimeoutMs,
  toTask: (row, submit) => ({
    task: {
      version: 1,
      id: submit.uid,
      hash: 'hash',
      input: String(row.prompt.at(-1)?.content),
      data: {},
      dataSource: row.dataSource ?? 'test',
      extraInfo: row.extraInfo ?? {},
    },
    answer: { version: 1, taskId: submit.uid, groundTruth: null },
  }),
})
const server = await createRolloutServer({ service, token, channel, port })
console.log(JSON.stringify({ url: `${server.url.replace('http', 'ws')}${channelPath}` }))

process.stdin.resume()
process.stdin.once('end', async () => {
  for (const part of [server, channel, service, gateway, environment, engine, store]) await part.close()
  process.exit(0)
})

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { AgentProgram, RolloutRequest } from '@aworld-train/core'
import { createEnvironment } from '@aworld-train/environment'
import { createRolloutRunner } from '@aworld-train/rollout'
import { openRunStore, readRun } from '@aworld-train/store'
import { expect, test } from 'vitest'
import { startChatGateway } from '../packages/gateway/src/testing/start-chat-gateway.ts'

/** Asks four times, each time with all that was said before, and answers with what came last. */
const program: AgentProgram = {
  agents: [{ name: 'asker', trainable: true }],
  async run(task, context) {
    const { baseUrl } = context.policy('asker')
    const messages: { role: string; content: string }[] = []
    for (let turn = 0; turn < 4; turn++) {
      messages.push({ role: 'user', content: `${task.input} ${turn}` })
      const response = await fetch(`${baseUrl}/chat/completions`, {
        method: 'POST',
        body: JSON.stringify({ messages, stream: turn % 2 === 1 }),
      })
      await response.text()
      messages.push({ role: 'assistant', content: 'ja' })
    }
    return { answer: 'ja', messages: [] }
  },
}

const request = (index: number): RolloutRequest => ({
  version: 1,
  key: `train/${index}`,
  task: { version: 1, id: `task-${index}`, hash: 'hash', input: `Frage ${index} 👋`, data: {}, dataSource: 'test', extraInfo: {} },
  group: 'group',
  sample: index,
  split: 'train',
  policy: 'policy',
  sampling: { temperature: 1, topP: 1, topK: 0, maxTokens: 64, stop: [], seed: 0 },
  limits: {},
})

test('rollouts before a chat engine are read back from the run as they ended, turn for turn', async () => {
  await using stack = new AsyncDisposableStack()
  const directory = stack.adopt(await mkdtemp(join(tmpdir(), 'chat-engine-rollouts-')), (each) => rm(each, { recursive: true }))
  const path = join(directory, 'run')
  const store = await openRunStore({ path })
  const { gateway } = stack.use(await startChatGateway(() => 'ja'))
  const environment = stack.adopt(createEnvironment({ baseDirectory: directory }), (each) => each.close())
  const answerKey = (taskId: string) => ({ version: 1 as const, taskId, groundTruth: null })
  const runner = createRolloutRunner({ program, gateway, environment, reward: null, store, answerKey, concurrency: 8 })
  const episodes = await runner.runAll(
    Array.from({ length: 12 }, (_, index) => request(index)),
    new AbortController().signal,
  )
  await runner.close()
  expect(episodes.map(({ stopReason }) => stopReason)).toEqual(Array(12).fill('completed'))
  const sampled = episodes
    .flatMap(({ trajectories }) => trajectories[0]!.turns)
    .reduce((sum, { completionTokenIds }) => sum + completionTokenIds.length, 0)
  expect(store.counts()).toMatchObject({ rollouts: 12, finished: 12, turns: 48, sampledTokens: sampled })
  await store.close()
  const run = readRun(path)
  const read = new Map(Array.from(run.episodes(), (episode) => [episode.rollout, episode]))
  for (const episode of episodes) expect(read.get(episode.rollout)).toEqual(episode)
  expect(episodes[0]!.trajectories[0]!.turns.map(({ parent, delivered }) => [parent, delivered])).toEqual([
    [null, 'delivered'],
    [0, 'delivered'],
    [1, 'delivered'],
    [2, 'delivered'],
  ])
  run.close()
})

// Real agents with a tool, run by the rollout runner through the gateway into a run store, all at once. Prints one JSON line.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Agent, toAgentProgram, tool } from '@aworld-train/agent'
import type { RolloutRequest } from '@aworld-train/core'
import { createVllmChatEngine } from '@aworld-train/engines/remote'
import { createEnvironment } from '@aworld-train/environment'
import { createGateway } from '@aworld-train/gateway'
import { createRolloutRunner } from '@aworld-train/rollout'
import { openRunStore } from '@aworld-train/store'
import { z } from 'zod'
import { makeWorkload } from './workload.ts'

export interface AgentsResult {
  readonly makespan: number
  readonly bound: number
  readonly turns: number
  readonly failed: number
}

const [upstream, countText] = process.argv.slice(2)
const count = Number(countText)
await using stack = new AsyncDisposableStack()
const directory = stack.adopt(await mkdtemp(join(tmpdir(), 'bench-agents-')), (each) => rm(each, { recursive: true, force: true }))
const store = stack.adopt(await openRunStore({ path: join(directory, 'run') }), (each) => each.close())
const engine = await createVllmChatEngine({ replicas: [upstream!], model: { name: 'bench', contextLength: 131_072 }, maxInFlight: count })
stack.adopt(engine, (each) => each.close())
const models = { bench: { kind: 'chat', engine } } as const
const gateway = stack.adopt(await createGateway({ models, aliases: { '*': 'bench' }, seed: 1 }), (each) => each.close())
const environment = stack.adopt(createEnvironment({ baseDirectory: directory }), (each) => each.close())
const text = 'Iron is a metal, and so is lead. '.repeat(91)
const step = tool({ name: 'step', description: 'Goes on.', parameters: z.object({}), execute: async () => text })
const program = toAgentProgram(new Agent({ name: 'agent', systemPrompt: 'Go on until you are done.', tools: [step], maxTurns: 30 }))
const runner = createRolloutRunner({
  program,
  gateway,
  environment,
  reward: null,
  store,
  answerKey: (taskId) => ({ version: 1, taskId, groundTruth: null }),
  concurrency: count,
})
stack.adopt(runner, (each) => each.close())

const workload = makeWorkload(count, 0)
const requests = workload.rollouts.map((plan, index): RolloutRequest => {
  const id = `bench-${index}`
  return {
    version: 1,
    key: id,
    task: { version: 1, id, hash: id, input: `plan ${plan.join(' ')}`, data: {}, dataSource: 'bench', extraInfo: {} },
    group: id,
    sample: 0,
    split: 'train',
    policy: 'bench',
    sampling: { temperature: 1, topP: 1, topK: 0, maxTokens: 512, stop: [], seed: 0 },
    limits: {},
  }
})
const startedAt = performance.now()
const episodes = await runner.runAll(requests, new AbortController().signal)
const result: AgentsResult = {
  makespan: (performance.now() - startedAt) / 1000,
  bound: workload.bound,
  turns: episodes.reduce((sum, { trajectories }) => sum + (trajectories[0]?.turns.length ?? 0), 0),
  failed: episodes.filter(({ stopReason }) => stopReason !== 'completed').length,
}
process.stdout.write(`${JSON.stringify(result)}\n`)

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { AgentProgram, Episode } from '@aworld-train/core'
import { createEnvironment } from '@aworld-train/environment'
import { createRolloutRunner } from '@aworld-train/rollout'
import { openRunStore } from '@aworld-train/store'
import type { Policy } from './start-policy.ts'

const close = (each: { close(): Promise<void> }) => each.close()

/** The episode of a program on one task, with all parts of a training but the learner. */
export async function rollOut({ gateway }: Policy, program: AgentProgram, input: string): Promise<Episode> {
  await using stack = new AsyncDisposableStack()
  const directory = await mkdtemp(join(tmpdir(), 'frameworks-'))
  stack.defer(() => rm(directory, { recursive: true }))
  const environment = stack.adopt(createEnvironment({ baseDirectory: directory }), close)
  const store = stack.adopt(await openRunStore({ path: join(directory, 'run') }), close)
  const runner = stack.adopt(
    createRolloutRunner({
      program,
      gateway,
      environment,
      store,
      reward: { name: 'one', score: async () => ({ reward: 1, scores: {} }), close: async () => {} },
      answerKey: (taskId) => ({ version: 1, taskId, groundTruth: null }),
      concurrency: 1,
    }),
    close,
  )
  const task = { version: 1 as const, id: 'elements', hash: '', input, data: {}, dataSource: 'elements', extraInfo: {} }
  const sampling = { temperature: 1, topP: 1, topK: 0, maxTokens: 512, stop: [], seed: 0 }
  const request = {
    version: 1 as const,
    key: 'train/0',
    task,
    group: 'elements',
    sample: 0,
    split: 'train' as const,
    policy: 'policy',
    sampling,
    limits: {},
  }
  const [episode] = await runner.runAll([request], AbortSignal.timeout(300_000))
  return episode!
}

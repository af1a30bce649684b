import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { channelKey, type Episode, type RolloutRequest, type TrainingTask } from '@aworld-train/core'
import { openRunStore } from '@aworld-train/store'
import type { LoadedDataset } from '@aworld-train/training'
import { expect, test } from 'vitest'
import { trainerEvaluations } from './evaluations.ts'

const sampling = { temperature: 1, topP: 1, topK: 0, maxTokens: 8, stop: [], seed: 0 }
const tasks = ['a', 'b'].map((id): TrainingTask => ({ version: 1, id, hash: id, input: id, data: {}, dataSource: 'test', extraInfo: {} }))

test('of a step that two starts evaluated the later one counts, and a rollout without a result in no mean', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'aworld-train-evaluations-'))
  const store = await openRunStore({ path: join(folder, 'run') })
  const play = async (incarnation: string, task: TrainingTask, reward: number | null, isEnded = true) => {
    const key = channelKey({ run: 'run', incarnation, partition: 'val', step: 5, uid: `${incarnation}-${task.id}`, sample: 0 })
    const place = { group: task.id, sample: 0, split: 'test' }
    const request: RolloutRequest = { version: 1, key, task, ...place, step: 5, policy: 'policy', sampling, limits: {} }
    await store.begin(request)
    const outcome = { answer: null, messages: [], scores: {}, reward, stopReason: 'completed' as const }
    const record = { trajectories: [], toolCalls: [], timing: { startedAt: 1, endedAt: 2 } }
    const episode: Episode = { version: 2, rollout: key, attempt: 0, taskId: task.id, ...place, ...record, ...outcome }
    if (isEnded) await store.finish(episode)
  }
  try {
    for (const task of tasks) await play('first', task, 0)
    await play('second', tasks[0]!, 1)
    await play('second', tasks[1]!, null, false)
    const evaluated = trainerEvaluations({
      store,
      evaluatedSteps: ['first', 'second'].map((incarnation) => ({ incarnation, step: 5 })),
      test: { tasks } as unknown as LoadedDataset,
      samples: 1,
      sampling,
      kindKey: null,
    })
    expect(evaluated).toMatchObject([
      { name: 'test after step 5', tasks: 2, rollouts: 2, failed: 1, counted: { tasks: 1, rollouts: 1 }, reward: 1 },
    ])
  } finally {
    await store.close()
    await rm(folder, { recursive: true, force: true })
  }
})

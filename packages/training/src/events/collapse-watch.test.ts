import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { RunEvent } from '@aworld-train/core'
import { openRunStore } from '@aworld-train/store'
import { expect, it } from 'vitest'
import { createWarningTally } from '../directory/warning-tally.ts'
import { watchCollapse } from './collapse-watch.ts'

/** One process of a run: the warnings of its steps. Each step has two rollouts of each kind, and is committed before its event. */
async function train(
  path: string,
  options: { readonly steps: readonly [number, number][]; readonly from?: number; readonly kill?: boolean },
) {
  const store = await openRunStore({ path })
  const tally = createWarningTally(store.getState('warnings') as [] | undefined)
  const events: RunEvent[] = []
  const emit = (event: RunEvent) => {
    events.push(event)
    tally.read(event)
  }
  const checkpoints = () => [0, 4].map((step) => ({ step, path: join(path, 'checkpoints', `step-00000${step}`) }))
  const watch = watchCollapse(emit, { store, warnings: tally.warnings, checkpoints })
  for (const [index, rewards] of options.steps.entries()) {
    const step = (options.from ?? 1) + index
    for (const [kind, reward] of rewards.entries())
      for (const sample of [0, 1]) await finish(store, { step, kind: kind === 0 ? 'easy' : 'hard', sample, reward })
    const metrics = { rewardMean: (rewards[0] + rewards[1]) / 2 }
    await store.commitStep({ step, weightVersion: step, rollouts: [], metrics, checkpoint: null })
    // A process that is killed here has committed the step and said nothing.
    if (options.kill && index === options.steps.length - 1) break
    watch({ type: 'step-end', at: 0, step, steps: 20, weightVersion: step, metrics })
  }
  await store.setState('warnings', tally.warnings())
  await store.close()
  return events.flatMap((event) => (event.type === 'warning-raised' ? [`${event.code} ${event.message}`] : []))
}

type Store = Awaited<ReturnType<typeof openRunStore>>

async function finish(
  store: Store,
  place: { readonly step: number; readonly kind: string; readonly sample: number; readonly reward: number },
) {
  const { step, kind, sample, reward } = place
  const key = `train/${step}/${kind}/${sample}`
  const task = { version: 1 as const, id: kind, hash: kind, input: kind, data: {}, dataSource: 'tasks', extraInfo: {} }
  const sampling = { temperature: 1, topP: 1, topK: 0, maxTokens: 8, stop: [], seed: 0 }
  const request = {
    version: 1 as const,
    key,
    task,
    group: `train/${step}/${kind}`,
    sample,
    split: 'train',
    step,
    kind,
    policy: 'p',
    sampling,
    limits: {},
  }
  const { attempt } = await store.begin(request)
  await store.finish({
    version: 2,
    rollout: key,
    attempt,
    taskId: kind,
    group: request.group,
    sample,
    split: 'train',
    ...{ trajectories: [], toolCalls: [], messages: [], scores: {} },
    answer: null,
    reward,
    stopReason: 'completed',
    timing: { startedAt: 1, endedAt: 2 },
  })
}

async function inFolder(work: (path: string) => Promise<void>): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'aworld-train-collapse-'))
  try {
    await work(join(folder, 'run'))
  } finally {
    await rm(folder, { recursive: true, force: true, maxRetries: 3 })
  }
}

const good: [number, number][] = Array.from({ length: 8 }, () => [1, 0.8])
const lost: [number, number][] = Array.from({ length: 6 }, () => [1, 0])

it('says the step, the kinds that fell and the best checkpoint while the run goes on, once', () =>
  inFolder(async (path) => {
    const warnings = await train(path, { steps: [...good, ...lost] })
    expect(warnings).toEqual([
      expect.stringMatching(
        /^POLICY_COLLAPSED At step \d+ the policy .* fell: hard from 0\.8 in steps 1 to 3 to 0, all tasks from 0\.9 in steps 1 to 3 to 0\.5\. The best checkpoint is .*step-000004\. Stop, /,
      ),
    ])
  }))

it('says that no checkpoint is from before it', () =>
  inFolder(async (path) => {
    const steps = [0, 0, 0, 0, 0, 0, 0.5, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0].map((reward): [number, number] => [reward, reward])
    expect(await train(path, { steps })).toEqual([expect.stringContaining('No checkpoint is from before it')])
  }))

it.each([
  ['before the collapse', 9, false],
  ['as the step of the collapse was committed', 11, true],
  ['after it was said', 12, false],
])('a run that is killed %s says it once, of the same step', (_, until, kill) =>
  inFolder(async (path) => {
    const steps = [...good, ...lost]
    const whole = await train(`${path}-whole`, { steps })
    const first = await train(path, { steps: steps.slice(0, until), kill })
    const second = await train(path, { steps: steps.slice(until), from: until + 1 })
    expect([...first, ...second].map((message) => message.replaceAll(path, `${path}-whole`))).toEqual(whole)
  }),
)

it('says nothing of a step without a reward', () =>
  inFolder(async (path) => {
    const store = await openRunStore({ path })
    const events: RunEvent[] = []
    const watch = watchCollapse((event) => events.push(event), { store, warnings: () => [], checkpoints: () => [] })
    for (let step = 1; step <= 12; step++) watch({ type: 'step-end', at: 0, step, steps: 12, weightVersion: step, metrics: {} })
    await store.close()
    expect(events.every(({ type }) => type === 'step-end')).toBe(true)
  }))

// Groups ahead of their step over a Tinker service: the double of it, whose adapters are embedded policies.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { PolicyEndpoint, RolloutContext, RunEvent, RunReport } from '@aworld-train/core'
import { readRun } from '@aworld-train/store'
import { AgentTrainer } from 'aworld-train'
import { expect, it, onTestFinished } from 'vitest'
import { openTinkerService } from './support/tinker-service.ts'
import { makeTinyModel } from './support/tiny-model.ts'

const steps = 6
const promptsPerStep = 2
const samplesPerPrompt = 4

/** Steps at whose end the last sample of a group goes on, by the key of the group. */
const slowGroups: Readonly<Record<string, number>> = { 'train/1/1': 3, 'train/3/0': 4 }

/** A service, and a training over it; with `slow` some rollouts pause between their two calls until later steps have ended. */
async function open({ slow }: { readonly slow: boolean }) {
  const folder = await mkdtemp(join(tmpdir(), 'aworld-train-tinker-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  const model = await makeTinyModel(join(folder, 'model'))
  const service = await openTinkerService(model, { maxModels: 20 })
  onTestFinished(() => service[Symbol.asyncDispose]())
  let ended = 0

  async function agent(_task: unknown, { rollout, policy, signal }: RolloutContext): Promise<string> {
    const group = rollout.slice(0, rollout.lastIndexOf('/'))
    const sample = Number(rollout.slice(group.length + 1))
    await callModel(policy(), signal)
    const until = slow && sample === samplesPerPrompt - 1 ? (slowGroups[group] ?? 0) : 0
    do await sleep(5, undefined, { signal })
    while (ended < until)
    await callModel(policy(), signal)
    return String(sample)
  }

  return async (training: object, options: { onEvent?: (event: RunEvent) => void; signal?: AbortSignal } = {}) => {
    const trainer = new AgentTrainer({
      name: 'ahead',
      agent,
      trainDataset: Array.from({ length: 4 }, (_, index) => ({ id: `task-${index}`, prompt: `Is ${index} even?`, answer: 'yes' })),
      rewardFunc: (_source: unknown, answer: string) => Number(answer) % 2,
      trainEngineName: 'tinker',
      config: {
        model: { path: model },
        tinker: { url: service.url },
        training: { steps, promptsPerStep, samplesPerPrompt, maxStaleness: 1, checkpointEvery: 2, learningRate: 1e-2, ...training },
        sampling: { maxTokens: 6 },
        concurrency: 16,
      },
      seed: 3,
      runPath: join(folder, 'runs'),
      onEvent(event) {
        if (event.type === 'step-end') ended = event.step
        options.onEvent?.(event)
      },
    })
    return await trainer.train<RunReport>(options.signal)
  }
}

async function callModel({ baseUrl, apiKey, model }: PolicyEndpoint, signal: AbortSignal): Promise<void> {
  const body = JSON.stringify({ model, messages: [{ role: 'user', content: 'Is 1 even?' }] })
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${apiKey}` }
  const response = await fetch(`${baseUrl}/chat/completions`, { method: 'POST', headers, body, signal })
  if (!response.ok) throw new Error(await response.text())
  await response.text()
}

interface TrainedTurn {
  readonly step: number
  readonly rollout: string
  readonly version: number
}

/** The turns of trained rollouts, each with the step that trained it and the version of the weights that sampled it. */
function trainedTurns({ path }: RunReport): TrainedTurn[] {
  const run = readRun(path)
  try {
    return run
      .rolloutRows({ split: 'train', limit: 10_000 })
      .rows.flatMap(({ key, step }) =>
        run
          .episode(key)!
          .trajectories.flatMap(({ turns }) =>
            turns.flatMap(({ weightVersions }) => weightVersions.map(({ version }) => ({ step: step!, rollout: key, version }))),
          ),
      )
  } finally {
    run.close()
  }
}

/** Steps between the sampling of a turn and its training. Version 1 is published before the first step, and another after every step. */
const gapsOf = (turns: readonly TrainedTurn[]) => turns.map(({ step, version }) => step - version)

it('trains groups that are ahead of their step, each token once, and knows which weights sampled them', async () => {
  const train = await open({ slow: true })
  const published: number[] = []
  const report = await train({}, { onEvent: (event) => event.type === 'weights-updated' && published.push(event.weightVersion) })
  expect(report).toMatchObject({ status: 'finished', ledger: { unexplained: 0 } })
  expect(published).toEqual(Array.from({ length: steps + 1 }, (_, index) => index + 1))
  const turns = trainedTurns(report)
  expect(new Set(turns.map(({ rollout }) => rollout)).size).toBe(steps * promptsPerStep * samplesPerPrompt)
  expect(Math.min(...gapsOf(turns))).toBe(0)
  for (const { step, metrics } of report.curve) {
    const gaps = gapsOf(turns.filter((turn) => turn.step === step))
    expect(Math.max(...gaps)).toBeLessThanOrEqual(metrics!['mostStaleness']!)
  }
  expect(Math.max(...report.curve.map(({ metrics }) => metrics!['mostStaleness']!))).toBeGreaterThan(1)
  // A rollout that pauses between its calls while weights change has turns of both.
  const versions = Map.groupBy(turns, ({ rollout }) => rollout)
  expect([...versions.values()].some((each) => each[0]!.version < each.at(-1)!.version)).toBe(true)
})

it('trains nothing more than a step after its admission where staleness is hard', async () => {
  const train = await open({ slow: false })
  const report = await train({ hardStaleness: true })
  expect(report).toMatchObject({ status: 'finished', ledger: { unexplained: 0 } })
  expect(Math.max(...report.curve.map(({ metrics }) => metrics!['mostStaleness']!))).toBe(1)
  expect(Math.max(...gapsOf(trainedTurns(report)))).toBeLessThanOrEqual(1)
})

it('says of a stop what was in flight, and the same command finishes the run', async () => {
  const train = await open({ slow: true })
  const stop = new AbortController()
  const stopped = await train(
    {},
    { signal: stop.signal, onEvent: (event) => event.type === 'step-end' && event.step === 3 && stop.abort() },
  )
  expect(stopped).toMatchObject({ status: 'stopped', ledger: { unexplained: 0 } })
  expect(stopped.ledger!.untrained['in-flight']).toBeGreaterThan(0)
  const report = await train({})
  expect(report).toMatchObject({ status: 'finished', ledger: { unexplained: 0 } })
  const turns = trainedTurns(report)
  expect(Math.min(...gapsOf(turns))).toBe(0)
  expect(new Set(turns.map(({ rollout }) => rollout)).size).toBe(steps * promptsPerStep * samplesPerPrompt)
})

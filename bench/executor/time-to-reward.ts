import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { toAgentProgram } from '@aworld-train/agent'
import type { AgentProgram, RolloutContext, RunEvent } from '@aworld-train/core'
import { AgentTrainer } from 'aworld-train'
import { agent } from '../../examples/periodic-table/agent.ts'
import definition from '../../examples/periodic-table/aworld-train.config.ts'
import { type BenchRow, type BenchSuite, compare, spreadOf } from '../suite.ts'
import { type DurationShape, durationOf } from './durations.ts'

const project = fileURLToPath(new URL('../../examples/periodic-table/', import.meta.url))
const goal = 0.85
const evaluateEvery = 3
/** Seconds that every tool call of a training rollout takes beside the tool's own time: some rollouts are slow throughout. */
const delay: DurationShape = { medianSeconds: 0.15, sigma: 1, mostSeconds: 4, hanging: 0 }

interface TimeToReward {
  /** Seconds from the first step to the end of the evaluation that reached the goal; `null` where none did. */
  readonly seconds: number | null
  readonly steps: number
  readonly reward: number
}

/** The main example with a slow tool: how long until its 320 held-out tasks have a mean reward of 0.85. */
export const timeToReward: BenchSuite = {
  async run(args) {
    const seeds = args.length > 0 ? args.map(Number) : [1, 2, 3, 4, 5]
    const results: Record<0 | 1, TimeToReward[]> = { 0: [], 1: [] }
    for (const seed of seeds) {
      for (const maxStaleness of [0, 1] as const) {
        const result = await trainOnce(seed, maxStaleness)
        results[maxStaleness].push(result)
        process.stdout.write(`seed ${seed}, maxStaleness ${maxStaleness}: ${JSON.stringify(result)}\n`)
      }
    }
    const row = (measure: string, unit: string, read: (result: TimeToReward) => number): BenchRow => {
      const [without, ahead] = [spreadOf(results[0].map(read)), spreadOf(results[1].map(read))]
      return { measure, unit, better: 'lower', ours: ahead, peers: { 'maxStaleness 0': compare(ahead, without) } }
    }
    return {
      rows: [
        row(`time to held-out ${goal} with maxStaleness 1`, 's', ({ seconds }) => seconds ?? Number.POSITIVE_INFINITY),
        row('steps until then', 'steps', ({ steps }) => steps),
      ],
      notes: [
        `seeds ${seeds.join(', ')}; every tool call of a training rollout takes ${delay.medianSeconds} s in the median (lognormal, sigma 1, at most ${delay.mostSeconds} s); evaluated on the held-out tasks every ${evaluateEvery} steps, which is part of the time`,
      ],
    }
  },
}

async function trainOnce(seed: number, maxStaleness: 0 | 1): Promise<TimeToReward> {
  const runPath = await mkdtemp(join(tmpdir(), 'bench-time-to-reward-'))
  const stop = new AbortController()
  let startedAt = 0
  let seconds: number | null = null
  let reward = 0
  let steps = 0
  const onEvent = (event: RunEvent) => {
    if (event.type === 'step-start' && event.step === 1) startedAt = event.at
    else if (event.type === 'step-end') steps = event.step
    else if (event.type === 'evaluation-end' && !stop.signal.aborted) {
      reward = event.metrics['reward']!
      if (reward < goal) return
      seconds = (event.at - startedAt) / 1000
      stop.abort()
    }
  }
  try {
    const config = definition.config as { training: object; evaluation: object }
    const trainer = await AgentTrainer.create({
      ...definition,
      agent: withSlowTools(toAgentProgram(agent), seed),
      testDataset: undefined,
      validationDataset: definition.testDataset,
      config: {
        ...config,
        training: { ...config.training, maxStaleness, evaluateEvery, checkpointEvery: null },
        evaluation: { ...config.evaluation, before: false, greedy: false },
      },
      baseDirectory: project,
      runPath,
      seed,
      onEvent,
    })
    await trainer.train(stop.signal)
    return { seconds, steps, reward }
  } finally {
    await rm(runPath, { recursive: true, force: true })
  }
}

function withSlowTools(program: AgentProgram, seed: number): AgentProgram {
  return {
    ...program,
    run: (task, context) => program.run(task, context.rollout.startsWith('train/') ? slow(context, seed) : context),
  }
}

function slow(context: RolloutContext, seed: number): RolloutContext {
  const milliseconds = durationOf(context.rollout, seed, delay) * 1000
  return {
    ...context,
    async tools(name) {
      const tools = await context.tools(name)
      return {
        list: () => tools.list(),
        async call(request, signal) {
          await sleep(milliseconds, undefined, { signal })
          return await tools.call(request, signal)
        },
      }
    },
  }
}

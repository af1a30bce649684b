import type { GenerateResult } from '@aworld-train/core'
import { createLocalEngine, type LocalEngine } from '@aworld-train/engines/local'
import { shapes } from '../../packages/engines/bench/shapes.ts'
import { createNumbers } from '../../packages/engines/src/local/goldens/goldens.ts'
import { gradientOnly, randomRows, toSample } from '../../packages/engines/src/local/goldens/trainer.ts'
import { cpuOf, inTurns, openTrainers } from '../efficiency/learners.ts'
import { type ExampleRun, exampleModel, runExample } from '../efficiency/main-example.ts'
import { type BenchRow, type BenchSuite, compare, spreadOf } from '../suite.ts'

const seeds = [1, 2, 3, 4, 5]

/** Groups of `size` rows that share a prompt; rows that share nothing are groups of one. A round has some updates, of which the median is taken. */
const batches = [
  { measure: '4 groups of 8, prompt 200, 60 sampled', groups: 4, size: 8, prompt: 200, sampled: 60, updates: 5 },
  { measure: '4 groups of 8, prompt 1,000, 60 sampled', groups: 4, size: 8, prompt: 1_000, sampled: 60, updates: 3, atMost: 0.3 },
  { measure: 'the same, prompt 200, 6.4 M parameters', groups: 4, size: 8, prompt: 200, sampled: 60, updates: 1, model: shapes['6.4M']! },
  { measure: '64 rows of 64 that share nothing', groups: 64, size: 1, prompt: 1, sampled: 63, updates: 11, atMost: 1.05 },
  { measure: '8 rows of 1,060 that share nothing', groups: 8, size: 1, prompt: 1, sampled: 1_059, updates: 5, atMost: 1.05 },
  { measure: '16 rows of 260 that share nothing', groups: 16, size: 1, prompt: 1, sampled: 259, updates: 11, atMost: 1.05 },
]

/** What updates and sampling cost where what rows share is computed once: `npm run bench -- efficiency [rounds]`, three rounds by default. */
export const efficiency: BenchSuite = {
  async run([roundsText = '3']) {
    const rounds = Number(roundsText)
    const rows: BenchRow[] = []
    for (const batch of batches) rows.push(await measureUpdates(batch, rounds))
    const runs: ExampleRun[] = []
    for (const seed of seeds) {
      const { prompts, ...costs } = await runExample(seed)
      runs.push({ prompts, ...costs })
      process.stdout.write(`seed ${seed}  ${JSON.stringify(costs)}\n`)
    }
    const of = <Part extends keyof ExampleRun>(part: Part) => runs.map((run) => run[part])
    rows.push(
      rowOf('main example, all updates', 's CPU', of('updates'), { atMost: 0.25, of: 'unfolded' }),
      rowOf('main example, rows of the steps', 'tokens forwarded', of('trained'), { atMost: 1.15, of: 'distinct' }),
      rowOf('main example, the whole command', 's CPU', of('command'), { atMost: 0.87, of: 'unfolded' }),
      rowOf('main example, sampling', 'positions computed', of('sampled')),
    )
    for (const { measure, prompts, most } of [
      { measure: '8 calls at once, prompt 200', prompts: repeated(200) },
      { measure: '8 calls at once, prompt 1,500', prompts: repeated(1_500), most: { tokens: 1_550, cpu: 0.4 } },
      { measure: 'main example, first calls of the first step at once', prompts: runs[0]!.prompts },
    ]) {
      const { tokens, cpu } = await measureSampling(prompts, rounds)
      rows.push(rowOf(`sampling, ${measure}`, 'prompt tokens computed', tokens, { atMost: most?.tokens }))
      rows.push(rowOf(`sampling, ${measure}`, 'ms CPU', cpu, { atMost: most?.cpu, of: 'alone' }))
    }
    return {
      rows,
      notes: [
        `CPU is user + system of the whole process with two engine threads; ${rounds} rounds in turns, of the main example seeds ${seeds.join(', ')}`,
        'unfolded: the same learner with `folds: false`, and for a whole command a preload to the same effect (bench/efficiency/without-folding.ts)',
        'alone: the same calls one after another, each where none has read its prompt; its ids and logprobs are those of the calls at once, to the bit',
        'what groups sample is random, so that their rows share the prompt alone',
      ],
    }
  },
}

async function measureUpdates(batch: (typeof batches)[number], rounds: number): Promise<BenchRow> {
  const { measure, groups, size, prompt, sampled, updates, model = exampleModel, atMost } = batch
  await using trainers = await openTrainers(model)
  const next = createNumbers(1)
  const draw = (length: number): Int32Array => randomRows(next, [length], 256)[0]!
  const samples = Array.from({ length: groups }, () => draw(prompt)).flatMap((begin) =>
    Array.from({ length: size }, () => {
      const tokenIds = Int32Array.from([...begin, ...draw(sampled)])
      return toSample({ tokenIds, lossMask: Uint8Array.from(tokenIds, (_, i) => Number(i >= prompt)) })
    }),
  )
  const loss = { kind: 'sft', aggregation: 'token-mean' } as const
  const update = (folds: boolean): Promise<number> =>
    cpuOf(() => trainers.of(folds).learner.update({ samples, loss, optimizer: gradientOnly }))
  const costs: Cost[] = []
  for (let round = -1; round < rounds; round++) {
    const pairs: Awaited<ReturnType<typeof inTurns>>[] = []
    for (let i = 0; i < updates; i++) pairs.push(await inTurns(round + i, update))
    const medianOf = (name: 'folded' | 'unfolded') => spreadOf(pairs.map((pair) => pair[name])).median
    // WebAssembly is compiled for speed in the first round.
    if (round >= 0) costs.push({ folded: medianOf('folded'), unfolded: medianOf('unfolded') })
  }
  return rowOf(`update, ${measure}`, 'ms CPU', costs, { atMost, of: 'unfolded' })
}

/** Prompt tokens that calls compute, and milliseconds of CPU, at once beside each alone. */
async function measureSampling(prompts: readonly Int32Array[], rounds: number) {
  const local = await createLocalEngine({ model: exampleModel, threads: 2 })
  try {
    const tokens: Cost[] = []
    const cpu: Cost[] = []
    for (let round = -1; round < rounds; round++) {
      const together = await generate(local, [prompts])
      const alone = await generate(
        local,
        prompts.map((prompt) => [prompt]),
      )
      if (together.drawn !== alone.drawn) throw new Error('Calls at once do not draw what each draws alone.')
      if (round < 0) continue
      tokens.push({ together: together.tokens, alone: alone.tokens })
      cpu.push({ together: together.cpu, alone: alone.cpu })
    }
    return { tokens, cpu }
  } finally {
    await local.close()
  }
}

/** Begins the calls of a wave at once. Each wave has weights of a version of its own, which are alike, so that it finds nothing that another read. */
async function generate({ engine, learner }: LocalEngine, waves: readonly (readonly Int32Array[])[]) {
  const results: GenerateResult[] = []
  const { signal } = new AbortController()
  let cpu = 0
  for (const prompts of waves) {
    await learner.publish()
    const calls = prompts.map((promptTokenIds, i) => ({
      promptTokenIds,
      sampling: { temperature: 1, topP: 1, topK: 0, maxTokens: 8, stop: [], seed: 0 },
      random: { seed: 1, task: 'bench', sample: results.length + i, turn: 0 },
      affinity: `${results.length + i}`,
    }))
    cpu += await cpuOf(async () => results.push(...(await Promise.all(calls.map((call) => engine.generate(call, signal))))))
  }
  const tokens = waves.flat().reduce((sum, prompt, i) => sum + prompt.length - results[i]!.cachedTokens, 0)
  return { cpu, tokens, drawn: JSON.stringify(results.map(({ tokenIds, logprobs }) => [[...tokenIds], [...logprobs]])) }
}

const repeated = (length: number): Int32Array[] => Array(8).fill(randomRows(createNumbers(length), [length], 256)[0]!)

/** What one round cost, in several ways of which the first is ours. */
type Cost = Readonly<Record<string, number>>

function rowOf(
  measure: string,
  unit: string,
  costs: readonly Cost[],
  bound: { readonly atMost?: number | undefined; readonly of?: string } = {},
): BenchRow {
  const [ours, ...peers] = Object.keys(costs[0]!).map((name) => [name, spreadOf(costs.map((cost) => cost[name]!))] as const)
  const { atMost, of } = bound
  return {
    ...({ measure, unit, better: 'lower', ours: ours![1] } as const),
    peers: Object.fromEntries(peers.map(([name, spread]) => [name, compare(ours![1], spread)])),
    ...(atMost !== undefined && { bound: { atMost, ...(of && { of }) } }),
  }
}

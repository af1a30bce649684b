import { readFile } from 'node:fs/promises'
import process from 'node:process'
import { lossWeights } from '@aworld-train/core'
import { createViews } from '../src/local/arena.ts'
import { createNumbers } from '../src/local/goldens/goldens.ts'
import { randomRows, toSample } from '../src/local/goldens/trainer.ts'
import type { Kernels } from '../src/local/kernels/kernels.ts'
import { chooseTier, kernelsUrl, type SimdTier } from '../src/local/kernels/load-kernels.ts'
import { wasm } from '../src/local/kernels/webassembly.ts'
import { createLayout } from '../src/local/layout.ts'
import { applyCommand } from '../src/local/learner/apply-command.ts'
import { commandsOf, writeSamples } from '../src/local/learner/batch-writer.ts'
import { gradientCommand } from '../src/local/learner/gradient-command.ts'
import { setting } from '../src/local/learner/settings.ts'
import { fillRotations } from '../src/local/model/rotations.ts'
import type { ModelConfig } from '../src/local/model-config.ts'
import type { WorkerContext } from '../src/local/pool/worker-context.ts'
import { shapes } from './shapes.ts'

/** Share of an update's time in each kernel, in one thread. The rest is TypeScript. */
export async function profileUpdate(
  model: ModelConfig,
  tier: SimdTier,
  { rows = 32, length = 64, updates = 5 } = {},
): Promise<Record<string, number>> {
  const layout = createLayout({
    model,
    threads: 1,
    shards: 4,
    microBatchTokens: 512,
    batchTokens: 65_536,
    batchRows: 4_096,
    sampling: { rows: 1, stepTokens: 1 },
  })
  const memory = new wasm.Memory({ initial: layout.pages, maximum: layout.pages, shared: true })
  const views = createViews(memory.buffer)
  const instance = new wasm.Instance(new wasm.Module(await readFile(kernelsUrl(tier))), { env: { memory } })
  const spent: Record<string, number> = {}
  const timed = Object.entries(instance.exports).map(([name, kernel]) => [
    name,
    (...args: number[]) => {
      const start = performance.now()
      const result = (kernel as (...args: number[]) => number)(...args)
      spent[name] = (spent[name] ?? 0) + performance.now() - start
      return result
    },
  ])
  fillRotations(layout, views)
  const next = createNumbers(1)
  for (let i = 0; i < layout.table.count; i++) views.f32[layout.parameters / 4 + i] = (next() - 0.5) / 10
  const samples = randomRows(next, new Array<number>(rows).fill(length), model.vocabularySize).map((tokenIds, i) =>
    toSample({ tokenIds }, i),
  )
  const [command] = commandsOf(
    samples.map((sample) => sample.tokenIds),
    layout,
  )
  const loss = { kind: 'sft', aggregation: 'token-mean' } as const
  writeSamples(layout, views, command!, { samples, weights: lossWeights(samples, loss.aggregation), references: undefined, loss })
  const settings = layout.settings / 8
  Object.assign(views.f64.subarray(settings), {
    [setting.inverseTemperature]: 1,
    [setting.beta1]: 0.9,
    [setting.beta2]: 0.98,
    [setting.epsilon]: 1e-8,
    [setting.step]: 1,
  })
  const update = (): void => {
    let task = 0
    const context: WorkerContext = {
      kernels: Object.fromEntries(timed) as Kernels,
      layout,
      views,
      threadIndex: 0,
      threads: 1,
      barrier: () => {},
      nextTask: () => task++,
    }
    gradientCommand(context)
    task = 0
    applyCommand(context)
  }
  update()
  for (const name of Object.keys(spent)) spent[name] = 0
  const start = performance.now()
  for (let i = 0; i < updates; i++) update()
  const total = performance.now() - start
  const inKernels = Object.values(spent).reduce((sum, ms) => sum + ms, 0)
  const shares = Object.entries(spent).map(([name, ms]): [string, number] => [name, ms / total])
  return Object.fromEntries([...shares, ['typescript', 1 - inKernels / total] as [string, number]].sort((a, b) => b[1] - a[1]))
}

if (import.meta.main) {
  const [name = '1.1M', tier] = process.argv.slice(2)
  const shares = await profileUpdate(shapes[name]!, chooseTier(tier as SimdTier | undefined))
  for (const [kernel, share] of Object.entries(shares)) process.stdout.write(`${kernel.padEnd(22)} ${(share * 100).toFixed(1)} %\n`)
}

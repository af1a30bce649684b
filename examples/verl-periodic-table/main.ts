// Trains the agent of the main example twice, with the engine in the box and with verl, and prints both curves.
//   node main.ts [--steps 15] [--run-path runs] [--seed 1] [--only verl|local]
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { AgentTrainer, type RunReport } from 'aworld-train'
import local from '../periodic-table/aworld-train.config.ts'
import verl from './aworld-train.config.ts'
import { besideEachOther } from './curves.ts'

const { values } = parseArgs({
  options: { steps: { type: 'string' }, 'run-path': { type: 'string' }, seed: { type: 'string' }, only: { type: 'string' } },
})
const folder = (url: string) => fileURLToPath(new URL(url, import.meta.url))
const number = (text: string | undefined) => (text === undefined ? undefined : Number(text))
const options = { steps: number(values.steps) ?? 15, seed: number(values.seed), runPath: values['run-path'] ?? folder('runs'), fresh: true }

const trainings = {
  local: { ...local, ...options, baseDirectory: folder('../periodic-table/') },
  verl: { ...verl, ...options, baseDirectory: folder('./') },
}
const runs: Record<string, RunReport> = {}
for (const [name, training] of Object.entries(trainings)) {
  if (values.only !== undefined && values.only !== name) continue
  console.log(`${name}: ${options.steps} steps …`)
  runs[name] = await new AgentTrainer({
    ...training,
    onEvent(event) {
      // verl, Ray and torch take a minute and more before the first step.
      if (event.type === 'phase-progress') console.log(`${name}: ${event.phase}, ${event.done} of ${event.total}`)
      if (event.type === 'step-end') console.log(`${name}: step ${event.step}, reward ${event.metrics['rewardMean']?.toFixed(2) ?? '—'}`)
    },
  }).train()
}
console.log(`\n${besideEachOther(runs)}`)
for (const [name, { path, times }] of Object.entries(runs)) console.log(`${name}: ${(times.wallMs / 1000).toFixed(0)} s, ${path}`)

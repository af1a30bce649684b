// One training as a process of its own, so that it can be killed: its events on stdout, one JSON object a line.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { AgentTrainer, TrainError } from 'aworld-train'
import definition from '../../../../examples/verl-periodic-table/aworld-train.config.ts'

const runPath = process.argv[2] as string
const examples = join(import.meta.dirname, '../../../../examples')

/** The first of a split of the main example. */
function rows(split: string, count: number): Record<string, unknown>[] {
  const text = readFileSync(join(examples, 'periodic-table/data', `${split}.jsonl`), 'utf8')
  return text.split('\n', count).map((line) => JSON.parse(line) as Record<string, unknown>)
}

const trainer = new AgentTrainer({
  ...definition,
  name: 'resume',
  baseDirectory: join(examples, 'verl-periodic-table'),
  runPath,
  trainDataset: rows('train', 16),
  testDataset: rows('test', 8),
  config: {
    ...(definition.config as object),
    training: { steps: 4, promptsPerStep: 4, samplesPerPrompt: 4, learningRate: 1e-3, checkpointEvery: 1, evaluateEvery: 4 },
  },
  onEvent: (event) => process.stdout.write(`${JSON.stringify(event)}\n`),
})
try {
  await trainer.train()
} catch (error) {
  process.stdout.write(`${JSON.stringify({ error: error instanceof TrainError ? error.code : String(error) })}\n`)
  process.exitCode = 1
}

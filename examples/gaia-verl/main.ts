// Trains the GAIA agent with verl:  node main.ts [--dry-run] [--run-path runs] [key=value …]
// Keys of verl take the place of grpo_trainer.yaml. `--dry-run` renders the run directory, checks it against the installed
// verl, and starts nothing.
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { AgentTrainer } from 'aworld-train'

const { values, positionals: overrides } = parseArgs({
  allowPositionals: true,
  options: {
    agent: { type: 'string', default: './agent.yaml' },
    reward: { type: 'string', default: './reward.ts#gaiaRewardFunc' },
    train: { type: 'string', default: './datasets/train.jsonl' },
    test: { type: 'string', default: './datasets/test.jsonl' },
    'run-path': { type: 'string' },
    'dry-run': { type: 'boolean', default: false },
  },
})
const here = fileURLToPath(new URL('.', import.meta.url))

const trainer = new AgentTrainer({
  baseDirectory: here,
  agent: values.agent,
  rewardFunc: values.reward,
  trainDataset: values.train,
  testDataset: values.test,
  model: process.env['MODEL_PATH'] || undefined,
  config: overrides.length > 0 ? overrides : './grpo_trainer.yaml',
  runPath: values['run-path'] ?? `${here}runs`,
})

if (values['dry-run']) {
  const { path, files, notes, version, lacks } = await trainer.dryRun()
  for (const note of notes) console.log(`note: ${note}`)
  console.log(`verl ${version} takes this configuration; nothing was started.`)
  for (const each of lacks) console.log(`This machine cannot train it: ${each}`)
  console.log(`${path}\n  ${files.join('\n  ')}`)
} else {
  const { path, before, after } = await trainer.train()
  const reward = (value: number | undefined) => value?.toFixed(2) ?? '—'
  console.log(`held-out reward ${reward(before?.reward)} before, ${reward(after?.reward)} after; the run is in ${path}`)
}

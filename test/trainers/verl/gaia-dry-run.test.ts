// @module-tag quick
import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { loadDataset } from '@aworld-train/training'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { parse } from 'yaml'
import { verlEnvironment } from '../../support/python-environment.ts'
import { repository } from '../../support/run-cli.ts'

const example = join(repository, 'examples/gaia-verl')
const run = promisify(execFile)

let env: NodeJS.ProcessEnv
let runs: string

beforeAll(async () => {
  // Node and the sources are found by the script itself.
  const { MODEL_PATH: _, NODE_OPTIONS: __, ...variables } = process.env
  env = { ...variables, AWORLD_TRAIN_PYTHON: await verlEnvironment() }
  runs = await mkdtemp(join(tmpdir(), 'aworld-train-gaia-'))
}, 900_000)

afterAll(() => rm(runs, { recursive: true, force: true, maxRetries: 3 }))

const dryRun = (...args: string[]) => run('bash', [join(example, 'run.sh'), '--dry-run', '--run-path', runs, ...args], { env })

test('the GAIA example renders a whole run directory that the installed verl takes', async () => {
  const { stdout } = await dryRun()
  expect(stdout).toMatch(/verl 0\.\d+\.\d+ takes this configuration; nothing was started/)
  const folder = join(runs, 'gaia_super_agent-dry-run')
  const read = (name: string) => readFile(join(folder, name), 'utf8')
  expect(await read('agent.source.yaml')).toBe(await readFile(join(example, 'agent.yaml'), 'utf8'))
  expect(parse(await read('agent.yaml'))).toMatchObject([
    { _target_: 'aworld_train_bridge.verl.agent_loop.AworldTrainAgentLoop', module: `${example}/custom-agent-loop.ts#GaiaAgentLoop` },
  ])
  expect(parse(await read('final_trainer.yaml'))).toMatchObject({
    actor_rollout_ref: { model: { path: 'Qwen/Qwen3-4B' }, rollout: { name: 'vllm', n: 8 } },
  })
  expect((await loadDataset(join(folder, 'train_data.parquet'))).tasks).toHaveLength(16)
  await run('bash', ['-n', join(folder, 'run.sh')])
})

test('what only verl can refuse is refused by the dry run, with its words', async () => {
  await expect(dryRun('actor_rollout_ref.actor.loss_agg_mode=no-such-mode')).rejects.toMatchObject({
    stderr: expect.stringMatching(/CONFIG_INVALID|loss_agg_mode/),
  })
})

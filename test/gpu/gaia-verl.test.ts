import { spawn } from 'node:child_process'
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { RunReport } from '@aworld-train/core'
import { expect, it } from 'vitest'
import { repository } from '../support/run-cli.ts'
import { findGpuMachine, requireOrSkip } from './what-is-missing.ts'

const example = join(repository, 'examples/gaia-verl')
const toolServer = join(repository, 'packages/environment/src/testing/tool-server.ts')

/** A tool environment on loopback in place of GAIA's: it offers tools, and nothing there leads to an answer. */
async function startTools(cleanup: AsyncDisposableStack): Promise<string> {
  const child = spawn(process.execPath, [toolServer, '--http', 'modern'], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  cleanup.defer(async () => {
    const ended = new Promise((resolve) => child.once('exit', resolve))
    if (child.exitCode === null && child.kill()) await ended
  })
  const port = await new Promise<string>((resolve, reject) => {
    child.once('error', reject).once('exit', (code) => reject(new Error(`The tool server ended with ${code}.`)))
    child.stdout.once('data', (line: Buffer) => resolve(line.toString().trim()))
  })
  return `http://127.0.0.1:${port}/mcp`
}

it('trains the GAIA example for two steps with vLLM: every sampled token is trained or accounted for', async ({ skip }) => {
  const machine = requireOrSkip(await findGpuMachine(repository), skip)
  await using cleanup = new AsyncDisposableStack()
  const runs = await mkdtemp(join(tmpdir(), 'aworld-train-gpu-'))
  cleanup.defer(() => rm(runs, { recursive: true, force: true, maxRetries: 3 }))
  const env = {
    ...process.env,
    MODEL_PATH: machine.model,
    AWORLD_TRAIN_PYTHON: machine.python,
    MCP_SERVER_URL: await startTools(cleanup),
    PATH: `${join(process.execPath, '..')}:${process.env['PATH']}`,
    train_batch_size: '2',
    ppo_mini_batch_size: '2',
    n_resp_per_prompt: '4',
    max_prompt_length: '4096',
    max_response_length: '2048',
    max_turns: '3',
  }
  const overrides = [
    'trainer.total_training_steps=2',
    'trainer.val_before_train=false',
    'trainer.test_freq=-1',
    'trainer.save_freq=2',
    // `setup verl` brings no FlashAttention, which these take the place of.
    '+actor_rollout_ref.model.override_config.attn_implementation=sdpa',
    'actor_rollout_ref.model.use_remove_padding=false',
  ]
  const child = spawn('bash', [join(example, 'run.sh'), ...overrides, '--run-path', runs], { env, stdio: ['ignore', 'inherit', 'inherit'] })
  expect(await new Promise((resolve, reject) => child.once('error', reject).once('exit', resolve))).toBe(0)

  const [name] = await readdir(runs)
  const report = RunReport.parse(JSON.parse(await readFile(join(runs, name!, 'report.json'), 'utf8')))
  expect(report).toMatchObject({ status: 'finished', ledger: { unexplained: 0 } })
  expect(report.curve.map(({ step }) => step)).toEqual([1, 2])
  expect(report.ledger!.trained).toBeGreaterThan(0)
  expect(report.counts.rollouts).toBeGreaterThanOrEqual(16)
})

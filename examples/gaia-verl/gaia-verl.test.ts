import { execFileSync } from 'node:child_process'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { readVerlConfig } from '@aworld-train/trainers/verl'
import { gaiaRewardFunc, loadAgent, loadDataset } from 'aworld-train'
import { expect, it, onTestFinished } from 'vitest'
import { systemPrompt } from './prompt.ts'

const example = fileURLToPath(new URL('.', import.meta.url))

/** Arguments that run.sh starts main.ts with. */
function argumentsOf(variables: Readonly<Record<string, string>>, args: readonly string[]): string[] {
  const bin = mkdtempSync(join(tmpdir(), 'gaia-verl-'))
  onTestFinished(() => rmSync(bin, { recursive: true, force: true }))
  writeFileSync(join(bin, 'node'), '#!/bin/sh\nprintf "%s\\n" "$@" >&3\n')
  chmodSync(join(bin, 'node'), 0o755)
  const env = { PATH: `${bin}:/usr/bin:/bin`, ...variables }
  const command = ['-c', 'bash "$0" "$@" 3>&1 >/dev/null', join(example, 'run.sh'), ...args]
  const [launcher, run, ...started] = execFileSync('bash', command, {
    env,
    encoding: 'utf8',
    cwd: tmpdir(),
    stdio: ['ignore', 'pipe', 'inherit'],
  })
    .trimEnd()
    .split('\n')
  expect([launcher && relative(example, resolve(launcher)), run]).toEqual(['../../scripts/launch.mjs', 'run'])
  return started
}

/** Keys and values of verl that a list of overrides, or a file, stands for. */
async function keysOf(source: string | readonly string[]): Promise<Record<string, unknown>> {
  const { keys, problems, settings } = await readVerlConfig(source, { baseDirectory: example })
  expect(problems).toEqual([])
  return { ...Object.fromEntries([...keys.values()].map(({ path, value }) => [path, value])), maxTurns: settings.limits.maxTurns }
}

it('run.sh and grpo_trainer.yaml are the same training', async () => {
  const [main, ...rest] = argumentsOf({}, [])
  expect(main).toBe(join(example, 'main.ts'))
  expect(rest.slice(0, 8)).toEqual([
    '--agent',
    join(example, 'agent.yaml'),
    '--reward',
    `${join(example, 'reward.ts')}#gaiaRewardFunc`,
    '--train',
    join(example, 'datasets/train.jsonl'),
    '--test',
    join(example, 'datasets/test.jsonl'),
  ])
  expect(await keysOf(rest.slice(8))).toEqual(await keysOf(join(example, 'grpo_trainer.yaml')))
})

it('variables from outside and arguments reach the training', async () => {
  const rest = argumentsOf({ actor_lr: '5e-7', max_turns: '3' }, ['--dry-run', 'trainer.total_epochs=2']).slice(9)
  expect(rest).toContain('--dry-run')
  const keys = await keysOf(rest.filter((each) => !each.startsWith('--')))
  expect(keys).toMatchObject({ 'actor_rollout_ref.actor.optim.lr': 5e-7, 'trainer.total_epochs': 2, maxTurns: 3 })
})

it('the prompt asks for what the reward reads, and the agent is the one in training', async () => {
  expect(systemPrompt).toContain('<answer>…</answer>')
  const { program } = await loadAgent('./agent.yaml', example)
  expect(program.agents).toMatchObject([
    { name: 'gaia_super_agent', trainable: true, mcpServers: expect.arrayContaining(['terminal-server']) },
  ])
})

it('every sample row has an answer that the reward takes, and none is in both files', async () => {
  const [train, test] = [await loadDataset(join(example, 'datasets/train.jsonl')), await loadDataset(join(example, 'datasets/test.jsonl'))]
  const questions = [...train.tasks, ...test.tasks].map(({ input }) => JSON.stringify(input))
  expect(new Set(questions).size).toBe(questions.length)
  for (const { tasks, answers, problems } of [train, test]) {
    expect(problems).toEqual([])
    for (const task of tasks) {
      const { groundTruth } = answers.get(task.id)!
      expect(gaiaRewardFunc(task.dataSource, `So it is <answer>${groundTruth}</answer>`, groundTruth)).toBe(1)
      expect(gaiaRewardFunc(task.dataSource, `${groundTruth}`, groundTruth)).toBe(0)
    }
  }
})

// @module-tag quick
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { RunReport } from '@aworld-train/core'
import { readRun } from '@aworld-train/store'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { repository } from '../../support/run-cli.ts'

const seed = 11

/** Plain SIMD gives the same bits on every machine, so these bounds are met or missed for good. */
const env = { ...process.env, AWORLD_TRAIN_SIMD: 'plain' }

let folder: string
let output: string
let report: RunReport
let run: string

beforeAll(async () => {
  process.env['AWORLD_TRAIN_SIMD'] = 'plain'
  folder = await mkdtemp(join(tmpdir(), 'aworld-train-main-'))
  const child = spawn(
    process.execPath,
    ['packages/cli/src/main.ts', 'train', 'examples/periodic-table', '--seed', String(seed), '--run-path', join(folder, 'runs')],
    { cwd: repository, env, stdio: ['ignore', 'pipe', 'pipe'] },
  )
  const chunks: Buffer[] = []
  child.stdout.on('data', (chunk: Buffer) => chunks.push(chunk))
  child.stderr.on('data', (chunk: Buffer) => chunks.push(chunk))
  const code = await new Promise<number | null>((resolve, reject) => child.on('error', reject).on('close', resolve))
  output = Buffer.concat(chunks).toString()
  expect(code, output).toBe(0)
  const [name] = await readdir(join(folder, 'runs'))
  run = join(folder, 'runs', name as string)
  report = JSON.parse(await readFile(join(run, 'report.json'), 'utf8'))
}, 300_000)

afterAll(async () => {
  delete process.env['AWORLD_TRAIN_SIMD']
  await rm(folder, { recursive: true, force: true })
})

describe('the main example', () => {
  it('starts at 0.3 or below and reaches 0.6 or more on held-out tasks', () => {
    expect(report.before?.rollouts).toBeGreaterThanOrEqual(300)
    expect(report.before?.reward).toBeLessThanOrEqual(0.3)
    expect(report.after?.reward).toBeGreaterThanOrEqual(0.6)
    expect(report.after?.sampling).toEqual(report.before?.sampling)
    expect(report.after?.sampling.temperature).toBe(1)
    // Greedy decoding takes the wrong decisions too before, and the right ones after: more is learned than to be sure.
    expect(report.greedyBefore?.reward).toBeLessThanOrEqual(0.3)
    expect(report.greedyAfter?.reward).toBeGreaterThan(report.after?.reward ?? 1)
  })

  it('shows what it does', () => {
    for (const part of [
      'plain SIMD',
      'train:',
      'mean reward of each step',
      '┤',
      'one episode of step',
      'lookup(',
      'reward',
      'before',
      'after',
      'next',
      'replay',
      report.path.slice(-20),
    ])
      expect(output).toContain(part)
  })

  it('makes every policy call through the gateway and every tool call in the server', () => {
    const { modelCalls, toolCalls, rollouts } = report.counts
    expect(modelCalls.gateway).toBeGreaterThan(rollouts)
    expect(modelCalls.agent).toBe(modelCalls.gateway)
    expect(modelCalls.engine).toBe(modelCalls.gateway)
    expect(toolCalls.environment).toBeGreaterThan(rollouts / 2)
    expect(toolCalls.agent).toBe(toolCalls.environment)
    expect(toolCalls.servers).toBe(toolCalls.environment)
  })

  it('accounts for every sampled token', () => {
    const ledger = report.ledger
    expect(ledger?.unexplained).toBe(0)
    expect(ledger?.sampled).toBeGreaterThan(50_000)
    expect((ledger?.withVariance.trained ?? 0) / (ledger?.withVariance.sampled ?? 1)).toBeGreaterThanOrEqual(0.95)
    const fromStore = readRun(run)
    try {
      expect(fromStore.counts().sampledTokens).toBe(ledger?.sampled)
    } finally {
      fromStore.close()
    }
  })

  it('continues every conversation token for token, from a head of at most 16 tokens', () => {
    const reader = readRun(run)
    try {
      let turns = 0
      for (const episode of reader.episodes({ split: 'test' })) {
        for (const turn of episode.trajectories.flatMap((trajectory) => trajectory.turns)) {
          turns += 1
          expect(turn.parent).toBe(turn.index === 0 ? null : turn.index - 1)
        }
        const first = episode.trajectories[0]?.turns[0]
        const ids = first?.promptTokenIds ?? Int32Array.of()
        expect(ids.indexOf(ids[0] as number, 1), 'tokens before the first user turn').toBeLessThanOrEqual(16)
      }
      expect(turns).toBeGreaterThan(1000)
    } finally {
      reader.close()
    }
  })

  it('leaves a run directory with the names that AWorld uses', () => {
    for (const name of [
      'agent.yaml',
      'final_trainer.yaml',
      'train_data.parquet',
      'test_data.parquet',
      'manifest.json',
      'report.json',
      'events.jsonl',
      'run.db',
      'segments',
      'checkpoints',
      'tokenizer/tokenizer.json',
      'tokenizer/tokenizer_config.json',
    ])
      expect(existsSync(join(run, name)), name).toBe(true)
  })

  it('leaves no tool server behind', async (context) => {
    if (process.platform !== 'linux') return context.skip('processes are listed from /proc, which only Linux has')
    await expect.poll(() => toolServersOf(process.pid)).toEqual([])
  })
})

async function toolServersOf(parent: number): Promise<string[]> {
  const found: string[] = []
  for (const pid of await readdir('/proc')) {
    if (!/^\d+$/.test(pid)) continue
    try {
      const command = await readFile(`/proc/${pid}/cmdline`, 'utf8')
      const status = await readFile(`/proc/${pid}/stat`, 'utf8')
      const ancestor = Number(status.slice(status.lastIndexOf(')') + 2).split(' ')[1])
      if (command.includes('periodic-table/server.ts') && (ancestor === 1 || ancestor === parent)) found.push(command)
    } catch {
      // The process ended while it was read.
    }
  }
  return found
}

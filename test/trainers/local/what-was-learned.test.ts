// @module-tag quick
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Agent, AgentTrainer, type EvaluationWithResults, loadDataset } from 'aworld-train'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { systemPrompt } from '../../../examples/periodic-table/agent.ts'
import definition from '../../../examples/periodic-table/aworld-train.config.ts'
import { readElements } from '../../../examples/periodic-table/elements.ts'
import { answerFrom, permuteTable } from '../../../examples/periodic-table/permute-table.ts'
import type { TaskRow } from '../../../examples/periodic-table/tasks.ts'
import { repository, runCli } from '../../support/run-cli.ts'

const example = join(repository, 'examples/periodic-table')

let folder: string
let run: string

/** Plain SIMD gives the same bits on every machine, so these bounds are met or missed for good. */
beforeAll(async () => {
  process.env['AWORLD_TRAIN_SIMD'] = 'plain'
  folder = await mkdtemp(join(tmpdir(), 'aworld-train-learned-'))
  const runs = join(folder, 'runs')
  const { code, stderr } = await runCli(['train', example, '--seed', '11', '--run-path', runs], { deadlineMs: 300_000 })
  expect(code, stderr).toBe(0)
  run = join(runs, (await readdir(runs))[0] as string)
}, 320_000)

afterAll(async () => {
  delete process.env['AWORLD_TRAIN_SIMD']
  await rm(folder, { recursive: true, force: true })
})

describe('what the main example learned', () => {
  it('is the tools and not the table: with a permuted table the accuracy against its truth falls by at most 0.05', async () => {
    const real: number[] = []
    const permuted: number[] = []
    const table = permuteTable(readElements(), 5)
    const tableFile = join(folder, 'permuted.json')
    await writeFile(tableFile, JSON.stringify({ elements: table }))
    const rows = (await readFile(join(example, 'data/test.jsonl'), 'utf8'))
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as TaskRow)
    const permutedRows = rows.map((row) => ({ ...row, answer: answerFrom(table, row) }))
    expect(permutedRows.filter((row, index) => row.answer !== rows[index]?.answer).length).toBeGreaterThan(rows.length / 2)
    for (const samplingSeed of [1, 2, 3]) {
      real.push((await evaluate([], join(example, 'data/test.jsonl'), samplingSeed)).reward ?? 0)
      permuted.push((await evaluate(['--table', tableFile], permutedRows, samplingSeed)).reward ?? 0)
    }
    expect(mean(real) - mean(permuted)).toBeLessThanOrEqual(0.05)
  })

  it('is worth nothing without the tools: no kind is above its chance', async () => {
    const { tasks } = await loadDataset(join(example, 'data/test.jsonl'))
    const chance: Record<string, number> = {
      'atomic number': 1 / 118,
      symbol: 1 / 118,
      period: 32 / 118,
      group: 7 / 90,
      'two-hop': 0.01,
      comparison: 0.5,
    }
    const kindOf = new Map(
      tasks.map(({ id, extraInfo }) => [id, String(extraInfo['kind'] === 'one-hop' ? extraInfo['attribute'] : extraInfo['kind'])]),
    )
    const { results } = await evaluate(['--off'], join(example, 'data/test.jsonl'), 1)
    for (const [kind, rows] of Map.groupBy(results, ({ taskId }) => kindOf.get(taskId) ?? '')) {
      const p = chance[kind] ?? 0
      const accuracy = mean(rows.map(({ reward }) => reward ?? 0))
      expect(accuracy, kind).toBeLessThanOrEqual(p + 1.96 * Math.sqrt((p * (1 - p)) / rows.length))
    }
  })
})

/** The trained policy over tasks, with a server of its own. */
async function evaluate(
  serverArguments: readonly string[],
  dataset: string | readonly Record<string, unknown>[],
  samplingSeed: number,
): Promise<EvaluationWithResults> {
  const agent = new Agent({
    name: 'chemist',
    systemPrompt,
    mcpConfig: { mcpServers: { elements: { command: 'node', args: [join(example, 'server.ts'), ...serverArguments], stateless: true } } },
  })
  const checkpoints = (await readdir(join(run, 'checkpoints'))).filter((name) => name.startsWith('step-')).sort()
  const trainer = await AgentTrainer.create({
    ...definition,
    agent,
    baseDirectory: example,
    model: join(run, 'checkpoints', checkpoints.at(-1) as string),
    seed: samplingSeed,
    runPath: join(folder, 'controls'),
  })
  return await trainer.inference(dataset)
}

const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / (values.length || 1)

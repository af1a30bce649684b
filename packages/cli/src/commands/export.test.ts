import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Episode, TrainingSample } from '@aworld-train/core'
import { openRunStore } from '@aworld-train/store'
import { asyncBufferFromFile, parquetMetadataAsync, parquetReadObjects } from 'hyparquet'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { z } from 'zod'
import { exportRun } from './export.ts'

let folder: string
let run: string

const sampling = { temperature: 1, topP: 1, topK: 0, maxTokens: 8, stop: [], seed: 0 }

/** A finished rollout of one turn. */
function episodeOf(rollout: string, reward: number, split = 'train'): Episode {
  const timing = { startedAt: 1, endedAt: 2 }
  return {
    version: 2,
    rollout,
    attempt: 0,
    taskId: 'task-1',
    group: 'group-1',
    sample: 0,
    split,
    trajectories: [
      {
        version: 2,
        id: 'agent',
        agent: 'agent',
        policy: 'local',
        trainable: true,
        startedBy: [],
        timing: null,
        turns: [
          {
            version: 2,
            index: 0,
            agent: 'agent',
            trajectory: 'agent',
            attempt: 0,
            parent: null,
            branchReasons: ['first-call'],
            promptTokenIds: Int32Array.of(5, 6),
            completionTokenIds: Int32Array.of(7, 8, 9),
            rolloutLogprobs: Float32Array.of(-0.5, -1, -0.25),
            weightVersions: [{ fromToken: 0, version: 3 }],
            finishReason: { unified: 'stop', raw: 'stop' },
            delivered: 'delivered',
            messagesDelta: [{ role: 'user', content: 'Is 4 even?' }],
            message: { role: 'assistant', content: 'yes' },
            toolCalls: [],
            sampling,
            usage: { promptTokens: 2, completionTokens: 3, cachedTokens: 0 },
            timing,
            capture: { tokens: 'token-in', logprobs: 'temperature' },
          },
        ],
      },
    ],
    toolCalls: [],
    answer: 'yes',
    messages: [
      { role: 'user', content: 'Is 4 even?' },
      { role: 'assistant', content: 'yes' },
    ],
    scores: {},
    reward,
    stopReason: 'completed',
    timing,
  }
}

/** Keeps finished episodes in the run. */
async function keep(...episodes: readonly Episode[]): Promise<void> {
  const store = await openRunStore({ path: run })
  for (const episode of episodes) {
    const { rollout: key, split } = episode
    const task = { version: 1 as const, id: 'task-1', hash: 'h', input: 'Is 4 even?', data: {}, dataSource: 'parity', extraInfo: {} }
    await store.begin({ version: 1, key, task, group: 'group-1', sample: 0, split, policy: 'local', sampling, limits: {} })
    await store.appendTurn(key, 0, 'agent', episode.trajectories[0]!.turns[0]!)
    await store.finish(episode)
  }
  await store.close()
}

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'aworld-train-export-'))
  run = join(folder, 'run')
  await keep(episodeOf('a', 1), episodeOf('b', 0), episodeOf('held-out', 1, 'test'))
})

afterEach(() => rmSync(folder, { recursive: true, force: true }))

const exportTo = (to: string, options: Record<string, unknown> = {}) =>
  exportRun.run({
    args: [run],
    options: exportRun.options.parse({ to, ...options }),
    signal: new AbortController().signal,
    output: process.stdout,
  })

/** Rows of a Parquet file, its 64-bit integers as numbers. */
async function rowsOf(path: string): Promise<unknown[]> {
  const rows = await parquetReadObjects({ file: await asyncBufferFromFile(path) })
  return JSON.parse(JSON.stringify(rows, (_key, value) => (typeof value === 'bigint' ? Number(value) : value)))
}

it('writes the same samples as lines of JSON and as Parquet', async () => {
  const [lines, table] = [join(folder, 'samples.jsonl'), join(folder, 'samples.parquet')]
  await exportTo(lines)
  await exportTo(table)
  const fromLines = readFileSync(lines, 'utf8')
    .trim()
    .split('\n')
    .map((line) => z.decode(TrainingSample, JSON.parse(line)))
  expect(fromLines).toHaveLength(2)
  expect(fromLines[0]).toMatchObject({ tokenIds: Int32Array.of(5, 6, 7, 8, 9), lossMask: Uint8Array.of(0, 0, 1, 1, 1), reward: 1 })
  expect((await rowsOf(table)).map((row) => z.decode(TrainingSample, row as z.input<typeof TrainingSample>))).toEqual(fromLines)
})

it('writes held-out episodes only where their split, or all, is asked for', async () => {
  const file = join(folder, 'episodes.jsonl')
  const rolloutsOf = async (options: Record<string, unknown>) => {
    await exportTo(file, { what: 'episodes', ...options })
    const lines = readFileSync(file, 'utf8').trim().split('\n')
    return lines.map((line) => (JSON.parse(line) as Episode).rollout)
  }
  expect(await rolloutsOf({})).toEqual(['a', 'b'])
  expect(await rolloutsOf({ split: 'test' })).toEqual(['held-out'])
  expect(await rolloutsOf({ split: 'all' })).toEqual(['a', 'b', 'held-out'])
})

it('names the splits there are where none of the chosen one is', async () => {
  await expect(exportTo(join(folder, 'none.jsonl'), { split: 'validation' })).rejects.toThrow(
    'Its episodes by split: test 1, train 2; choose one with --split.',
  )
})

it('writes whole episodes as Parquet', async () => {
  const table = join(folder, 'episodes.parquet')
  await exportTo(table, { what: 'episodes', minReward: 1 })
  expect(await rowsOf(table)).toMatchObject([{ rollout: 'a', answer: 'yes', reward: 1 }])
})

it.each(['samples', 'episodes'])(
  'writes %s in columns of one type whatever they hold, so that files of several runs are one table',
  async (what) => {
    const [whole, half] = ['whole', 'half'].map((name) => join(folder, `${name}.parquet`)) as [string, string]
    await exportTo(whole, { what })
    run = join(folder, 'other')
    const { turns, ...trajectory } = episodeOf('c', 0.5).trajectories[0]!
    const turn = { ...turns[0]!, constraint: { kind: 'choice' as const, choices: ['yes'] }, unusedFields: { user: '"me"' }, cost: 1 }
    const error = { code: 'AGENT_FAILED', boundary: 'agent' as const, retryable: false, message: 'no', details: { depth: { at: 1 } } }
    const scores = { exact: 1, 'style.length': 0.5 }
    await keep({ ...episodeOf('c', 0.5), trajectories: [{ ...trajectory, turns: [turn] }], scores, error, answer: null })
    await exportTo(half, { what })
    const columnsOf = async (path: string) => (await parquetMetadataAsync(await asyncBufferFromFile(path))).schema
    const columns = await columnsOf(whole)
    expect(await columnsOf(half)).toEqual(columns)
    const typesOf = (name: string) => new Set(columns.filter((column) => column.name === name).map(({ type }) => type))
    expect([typesOf('reward'), typesOf('attempt')]).toEqual([new Set(['DOUBLE']), new Set(['INT64'])])
    if (what === 'samples') return
    const constraint = JSON.stringify(turn.constraint)
    expect(await rowsOf(half)).toMatchObject([
      {
        reward: 0.5,
        scores,
        error: { ...error, details: '{"depth":{"at":1}}' },
        trajectories: [{ turns: [{ constraint, unusedFields: { user: '"me"' }, cost: 1, promptTokenIds: [5, 6] }] }],
      },
    ])
  },
)

it.each(['none.jsonl', 'none.parquet'])('leaves no file where nothing matches: %s', async (name) => {
  const target = join(folder, name)
  await expect(exportTo(target, { minReward: 2 })).rejects.toThrow('No samples of')
  expect(existsSync(target)).toBe(false)
})

it('says of a run of a service, whose checkpoints are pointers, where its weights are', async () => {
  const checkpoint = 'checkpoints/step-000001'
  const store = await openRunStore({ path: run })
  await store.commitStep({ step: 1, weightVersion: 1, rollouts: ['a'], metrics: {}, checkpoint })
  await store.close()
  mkdirSync(join(run, checkpoint), { recursive: true })
  await expect(exportTo(join(folder, 'model'), { what: 'model' })).rejects.toMatchObject({ code: 'CHECKPOINT_CORRUPT' })
  writeFileSync(join(run, checkpoint, 'tinker.json'), '{}')
  await expect(exportTo(join(folder, 'model'), { what: 'model' })).rejects.toMatchObject({
    code: 'CONFIG_INVALID',
    message: expect.stringMatching(/at the Tinker service.*tinker\.json points/),
  })
})

it('writes a model without the state of its optimiser', async () => {
  const checkpoint = 'checkpoints/step-000001'
  const store = await openRunStore({ path: run })
  await store.commitStep({ step: 1, weightVersion: 1, rollouts: ['a'], metrics: {}, checkpoint })
  await store.close()
  const path = join(run, checkpoint)
  mkdirSync(path, { recursive: true })
  const model = ['config.json', 'model.safetensors', 'tokenizer.json']
  for (const name of [...model, 'optimizer.safetensors', 'checkpoint.json']) writeFileSync(join(path, name), '{}')
  await exportTo(join(folder, 'model'), { what: 'model' })
  expect(readdirSync(join(folder, 'model')).sort()).toEqual(model)
})

it('writes one of several policies, and names them where none or another is named', async () => {
  const checkpoint = 'checkpoints/step-000001'
  const store = await openRunStore({ path: run })
  await store.commitStep({ step: 1, weightVersion: 1, rollouts: ['a'], metrics: {}, checkpoint })
  await store.close()
  for (const name of ['lead', 'reader']) {
    mkdirSync(join(run, checkpoint, name), { recursive: true })
    for (const file of ['config.json', 'checkpoint.json']) writeFileSync(join(run, checkpoint, name, file), name)
  }
  const target = join(folder, 'model')
  const refusal = (policy?: string) => exportTo(target, { what: 'model', policy }).catch((error: Error) => error.message)
  expect(await refusal()).toContain('has the policies "lead", "reader"; name the one to write with --policy.')
  expect(await refusal('raeder')).toContain('Did you mean "reader"?')
  await exportTo(target, { what: 'model', policy: 'reader' })
  expect(readdirSync(target)).toEqual(['config.json'])
  expect(readFileSync(join(target, 'config.json'), 'utf8')).toBe('reader')
})

it('writes the samples of one policy', async () => {
  const target = join(folder, 'samples.jsonl')
  await exportTo(target, { policy: 'local' })
  expect(
    readFileSync(target, 'utf8')
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line).policy),
  ).toContain('local')
  await expect(exportTo(join(folder, 'none.jsonl'), { policy: 'lokal' })).rejects.toThrow(
    `No episode of ${run} has the policy "lokal"; there are "local". Did you mean "local"? Correct --policy.`,
  )
  await expect(exportTo(join(folder, 'none.jsonl'), { policy: 'local', split: 'test', minReward: 9 })).rejects.toThrow('No samples of')
  await expect(exportTo(join(folder, 'none.jsonl'), { what: 'episodes', policy: 'local' })).rejects.toThrow('leave out --policy')
})

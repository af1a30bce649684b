import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type AnswerKey, type Message, type TrainingTask, taskHash } from '@aworld-train/core'
import fc from 'fast-check'
import { asyncBufferFromFile, parquetMetadataAsync, parquetReadObjects } from 'hyparquet'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { loadDataset, requireDataset } from './load-dataset.ts'
import { writeParquet } from './write-parquet.ts'

let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'aworld-train-parquet-'))
})
afterEach(() => rmSync(directory, { recursive: true, force: true }))

const text = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 12 }).filter((value) => value.trim() !== '')
const message: fc.Arbitrary<Message> = fc.record({ role: fc.constantFrom('system', 'user', 'assistant'), content: text })
const input = fc.array(message, { maxLength: 3 }).chain((head) => text.map((content): Message[] => [...head, { role: 'user', content }]))
const fields = (...names: [string, ...string[]]) =>
  fc.dictionary(fc.constantFrom(...names), fc.oneof(text, fc.maxSafeInteger(), fc.boolean()), {
    minKeys: 1,
    maxKeys: 2,
  })

const rows = fc.array(
  fc.record({
    input,
    dataSource: text,
    extraInfo: fields('kind', 'level'),
    truth: fc.oneof(
      text,
      fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => value + 0),
    ),
  }),
  {
    minLength: 1,
    maxLength: 6,
  },
)

describe('writeParquet', () => {
  it('writes what loadDataset reads back, with answers of one type kept as they are', async () => {
    const path = join(directory, 'tasks.parquet')
    await fc.assert(
      fc.asyncProperty(rows, async (drawn) => {
        const tasks = drawn.map(({ input, dataSource, extraInfo }, i): TrainingTask => {
          const hash = taskHash({ input, data: {} })
          return { version: 1, id: `task-${i}`, hash, input, data: {}, dataSource, extraInfo }
        })
        const answers = new Map<string, AnswerKey>(
          drawn.map(({ truth }, i) => [`task-${i}`, { version: 1, taskId: `task-${i}`, groundTruth: truth }]),
        )
        await writeParquet(tasks, answers, path)
        const back = await requireDataset(path)
        const isOneType = (values: readonly unknown[]) => new Set(values.map((value) => typeof value)).size <= 1
        for (const [i, task] of back.tasks.entries()) {
          const { extraInfo, ...rest } = tasks[i]!
          expect(task).toMatchObject(rest)
          for (const [key, value] of Object.entries(extraInfo)) {
            const column = tasks.flatMap((other) => (key in other.extraInfo ? [other.extraInfo[key]] : []))
            const asText = typeof value === 'string' ? value : JSON.stringify(value)
            expect(task.extraInfo[key]).toEqual(isOneType(column) ? value : asText)
          }
        }
        if (isOneType(drawn.map(({ truth }) => truth))) {
          expect([...back.answers.values()].map(({ groundTruth }) => groundTruth)).toEqual(drawn.map(({ truth }) => truth))
        }
      }),
      { numRuns: 60 },
    )
  })

  it('has the nested columns of training frameworks', async () => {
    const path = join(directory, 'deep', 'train_data.parquet')
    const { tasks, answers } = await loadDataset(
      [
        { prompt: 'hi', answer: 'a', data_source: 's', extra_info: { split: 'train', index: 0 } },
        {
          prompt: [
            { role: 'system', content: 'x' },
            { role: 'user', content: 'y' },
          ],
          answer: 'b',
          files: ['f.pdf'],
          setup: { commands: ['make'] },
          level: 3,
          data: { unit: 'kg' },
        },
      ],
      { filesDirectory: null },
    )
    await writeParquet(tasks, answers, path)
    const file = await asyncBufferFromFile(path)
    const names = (await parquetMetadataAsync(file)).schema.map(({ name }) => name)
    expect(names).toEqual(
      expect.arrayContaining(['prompt', 'list', 'element', 'role', 'content', 'reward_model', 'style', 'ground_truth', 'extra_info']),
    )
    expect(await parquetReadObjects({ file })).toMatchObject([
      {
        data_source: 's',
        prompt: [{ role: 'user', content: 'hi' }],
        ability: 's',
        reward_model: { style: 'rule', ground_truth: 'a' },
        extra_info: { index: 0n },
      },
      {
        prompt: [
          { role: 'system', content: 'x' },
          { role: 'user', content: 'y' },
        ],
        files: ['f.pdf'],
        setup: '{"commands":["make"]}',
        data: { unit: 'kg' },
        extra_info: { level: 3n },
      },
    ])
    expect(readdirSync(join(directory, 'deep'))).toEqual(['train_data.parquet'])
  })

  it('gives no struct the members of others when it is read back, also inside of lists', async () => {
    const path = join(directory, 'tasks.parquet')
    const extraInfo = { steps: [{ a: 1 }, { b: { c: [{ d: 2 }, { e: 'x' }] } }], gaps: [1, null, 2] }
    const call = { id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } }
    const prompt = [
      { role: 'user', content: 'x' },
      { role: 'assistant', content: null, tool_calls: [call] },
      { role: 'tool', content: 'y', tool_call_id: 'c' },
    ]
    const { tasks, answers } = await requireDataset([
      { id: 'a', prompt, answer: 1, extra_info: extraInfo },
      { id: 'b', prompt: 'x', answer: 1, extra_info: { other: 1 }, data: { list: [{ a: 1 }, { b: 1 }] } },
    ])
    await writeParquet(tasks, answers, path)
    const back = await requireDataset(path)
    expect(back.tasks.map(({ extraInfo }) => extraInfo)).toEqual([extraInfo, { other: 1 }])
    expect(back.tasks.map(({ data }) => data)).toEqual([{}, { list: [{ a: 1 }, { b: 1 }] }])
    expect(back.tasks[0]?.input).toEqual(tasks[0]?.input)
  })

  it('is refused when truncated', async () => {
    const path = join(directory, 'tasks.parquet')
    const { tasks, answers } = await loadDataset([{ prompt: 'hi', answer: 'a' }])
    await writeParquet(tasks, answers, path)
    const bytes = (await import('node:fs')).readFileSync(path)
    writeFileSync(path, bytes.subarray(0, bytes.length - 20))
    expect((await loadDataset(path)).problems[0]!.message).toMatch(/not readable Parquet/)
  })
})

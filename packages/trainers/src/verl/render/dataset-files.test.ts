import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { loadDataset } from '@aworld-train/training'
import { asyncBufferFromFile, parquetReadObjects } from 'hyparquet'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { writeVerlDataset } from './dataset-files.ts'

let directory: string
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'aworld-train-verl-data-'))
})
afterAll(() => rmSync(directory, { recursive: true, force: true }))

it('has the columns that verl reads, the split, and the whole task as one text', async () => {
  const loaded = await loadDataset([
    { id: 'a', prompt: 'How many?', answer: 3, data_source: 'gaia', level: 1, extra_info: { split: 'mine', hint: 'x' } },
    // verl would write a column "responses" over its own.
    { id: 'b', prompt: [{ role: 'user', content: 'Who?' }], answer: 'me', data_source: 'gaia', data: { shell: 3 }, responses: [1] },
  ])
  const path = join(directory, 'test_data.parquet')
  await writeVerlDataset(loaded, 'test', path)
  const rows = await parquetReadObjects({ file: await asyncBufferFromFile(path) })
  expect(Object.keys(rows[0]!).sort()).toEqual(['ability', 'data_source', 'extra_info', 'id', 'prompt', 'reward_model'])
  expect(rows[0]).toMatchObject({
    id: 'a',
    prompt: [{ role: 'user', content: 'How many?' }],
    extra_info: { split: 'test', index: 0n, hint: 'x', level: 1n },
  })
  expect(rows.map((row) => JSON.parse((row['extra_info'] as { task_json: string }).task_json))).toEqual(loaded.tasks)
  expect(rows.flatMap((row) => Object.keys(row['extra_info'] as object))).not.toContain('groundTruth')
})

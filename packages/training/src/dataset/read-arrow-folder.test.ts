import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { loadDataset, requireDataset } from './load-dataset.ts'

let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'aworld-train-dataset-'))
})
afterEach(() => rmSync(directory, { recursive: true, force: true }))

const messagesOf = async (source: Parameters<typeof loadDataset>[0], options?: Parameters<typeof loadDataset>[1]) =>
  (await loadDataset(source, options)).problems.map(({ message }) => message.replaceAll(`${directory}/`, ''))

describe('a folder saved by Hugging Face datasets', () => {
  const golden = fileURLToPath(new URL('../goldens/hugging-face-folder', import.meta.url))

  function copy(name: string, change: (folder: string, state: Record<string, unknown>) => void): string {
    const folder = join(directory, name)
    cpSync(golden, folder, { recursive: true })
    const state = JSON.parse(readFileSync(join(folder, 'state.json'), 'utf8')) as Record<string, unknown>
    change(folder, state)
    writeFileSync(join(folder, 'state.json'), JSON.stringify(state))
    return folder
  }

  it('is read as it was written, nested values and 64-bit integers included', async () => {
    const { tasks, answers } = await requireDataset(golden)
    expect(tasks.map(({ id }) => answers.get(id)!.groundTruth)).toEqual(['Paris', '7', '1,2', 'naïve 🧪'])
    expect(tasks[3]).toMatchObject({
      dataSource: 'gaia',
      input: [
        { role: 'system', content: 'Be short.' },
        { role: 'user', content: 'Question 3?' },
      ],
      extraInfo: { split: 'train', index: 2 ** 40 + 3, tags: ['a', 'b'], score: 0.75, easy: false, ability: 'search' },
    })
  })

  it('is read in the order of its state', async () => {
    const folder = copy('turned', (_, state) => (state['_data_files'] as unknown[]).reverse())
    const { tasks, answers } = await requireDataset(folder)
    expect(tasks.map(({ id }) => answers.get(id)!.groundTruth)).toEqual(['1,2', 'naïve 🧪', 'Paris', '7'])
  })

  it('is refused with a missing or broken part, an index mapping or several splits', async () => {
    const missing = copy('missing', (folder) => rmSync(join(folder, 'data-00001-of-00002.arrow')))
    expect(await messagesOf(missing)).toEqual([expect.stringContaining('data-00001-of-00002.arrow is named in state.json and missing')])
    const broken = copy('broken', (folder) => writeFileSync(join(folder, 'data-00000-of-00002.arrow'), 'none'))
    expect(await messagesOf(broken)).toEqual([expect.stringContaining('data-00000-of-00002.arrow is not a readable Arrow stream')])
    const cut = copy('cut', (folder) => truncateSync(join(folder, 'data-00000-of-00002.arrow'), 1500))
    expect(await messagesOf(cut)).toEqual([expect.stringContaining('data-00000-of-00002.arrow is not a readable Arrow stream')])
    const mapped = copy('mapped', (_, state) => Object.assign(state, { _indices_files: [{}] }))
    expect((await messagesOf(mapped))[0]).toContain('flatten_indices()')
    const splits = join(directory, 'splits')
    mkdirSync(join(splits, 'train'), { recursive: true })
    writeFileSync(join(splits, 'dataset_dict.json'), '{}')
    expect((await messagesOf(splits))[0]).toContain('several splits (train)')
  })
})

it('names columns that may be meant otherwise, and options that there are not', async () => {
  const rows = [{ promt: 'x', question: 'a', anwser: 1, answer: 1, extra_inf: {} }]
  expect((await loadDataset(rows)).warnings).toEqual([
    expect.stringMatching(
      /^"promt", "anwser", "extra_inf" go to .*"prompt" by "promt"\?.*"answer" by "anwser"\?.*"extra_info" by "extra_inf"\?$/,
    ),
  ])
  expect((await loadDataset([{ prompt: 'a', answer: 1, agent_name: 'x', extra_info: { kind: 'b' } }])).warnings).toEqual([])
  await expect(loadDataset(rows, { promptkey: 'question' } as object)).rejects.toMatchObject({
    code: 'CONFIG_INVALID',
    message: 'loadDataset has no option "promptkey". Did you mean "promptKey"?',
  })
})

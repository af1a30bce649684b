import { readdir, readFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import type { NumberedRow } from './numbered-row.ts'
import { plainObject, plainValue } from './plain-value.ts'
import type { ProblemList } from './problem-list.ts'

/** Last bytes of a stream that was closed (https://arrow.apache.org/docs/format/Columnar.html#ipc-streaming-format). */
const endOfStream = Buffer.of(0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0)

/** Reads the rows of a folder that `Dataset.save_to_disk` wrote (Arrow streams), in the order of its state.json. */
export async function* readArrowFolder(path: string, problems: ProblemList): AsyncIterable<NumberedRow> {
  const files = await arrowFiles(path, problems)
  if (files.length === 0) return
  const { tableFromIPC } = await import('apache-arrow')
  let number = 0
  for (const file of files) {
    let rows: Iterable<{ toJSON(): unknown } | null>
    try {
      const bytes = await readFile(file)
      if (!bytes.subarray(-8).equals(endOfStream)) throw new Error('it is truncated')
      rows = tableFromIPC(bytes)
    } catch (error) {
      problems.add(`${basename(file)} is not a readable Arrow stream (${(error as Error).message}); save the dataset again.`)
      continue
    }
    for (const row of rows) yield { row: fromArrow(row?.toJSON()), number: ++number }
  }
}

async function arrowFiles(path: string, problems: ProblemList): Promise<string[]> {
  const names = await readdir(path)
  if (names.includes('dataset_dict.json')) {
    const splits = names.filter((name) => !name.includes('.')).join(', ')
    problems.add(`the folder holds several splits (${splits}); name the folder of one.`)
    return []
  }
  const fromState = names.includes('state.json') ? await stateFiles(join(path, 'state.json'), problems) : null
  const arrow = fromState ?? names.filter((name) => name.endsWith('.arrow')).sort()
  if (arrow.length === 0) problems.add('the folder holds no .arrow files; name a dataset file, or a folder saved by Hugging Face datasets.')
  const missing = arrow.filter((name) => !names.includes(name))
  for (const name of missing) problems.add(`${name} is named in state.json and missing; save the dataset again.`)
  return arrow.filter((name) => names.includes(name)).map((name) => join(path, name))
}

async function stateFiles(path: string, problems: ProblemList): Promise<string[] | null> {
  try {
    const state = JSON.parse(await readFile(path, 'utf8')) as {
      _data_files?: { filename?: unknown }[]
      _indices_files?: unknown[] | null
    }
    if (state._indices_files?.length) {
      problems.add('the dataset was saved with an index mapping; call flatten_indices() before save_to_disk().')
      return []
    }
    const names = state._data_files?.map(({ filename }) => filename)
    return names?.every((name) => typeof name === 'string') ? (names as string[]) : null
  } catch (error) {
    problems.add(`state.json is not readable (${(error as Error).message}); save the dataset again.`)
    return []
  }
}

/** Converts Arrow's vectors and rows to plain arrays and objects. */
function fromArrow(value: unknown): unknown {
  if (value === null || typeof value !== 'object' || value instanceof Date || value instanceof Uint8Array) return plainValue(value)
  if (ArrayBuffer.isView(value)) return plainValue(value)
  if (Array.isArray(value)) return value.map(fromArrow)
  if ('toArray' in value && Symbol.iterator in value) return Array.from(value as Iterable<unknown>, fromArrow)
  const plain = 'toJSON' in value && typeof value.toJSON === 'function' ? (value.toJSON() as object) : value
  return Array.isArray(plain) ? plain.map(fromArrow) : plainObject(plain, fromArrow)
}

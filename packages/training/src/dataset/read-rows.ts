import { readdir, readFile, stat } from 'node:fs/promises'
import { basename, extname } from 'node:path'
import { promisify } from 'node:util'
import { gunzip } from 'node:zlib'
import { errorMessage } from '@aworld-train/core'
import type { DatasetSource } from './dataset-types.ts'
import { findShards } from './find-shards.ts'
import type { NumberedRow } from './numbered-row.ts'
import type { ProblemList } from './problem-list.ts'
import { readArrowFolder } from './read-arrow-folder.ts'
import { readCsv } from './read-csv.ts'
import { findHarborTasks, readHarborTasks } from './read-harbor.ts'
import { readJsonLines, readJsonRows } from './read-json.ts'
import { readParquet } from './read-parquet.ts'

const unzip = promisify(gunzip)

type RowReader = (path: string, problems: ProblemList) => AsyncIterable<NumberedRow>

const texts = { '.jsonl': readJsonLines, '.ndjson': readJsonLines, '.json': readJsonRows, '.csv': readCsv }
const textReaders = Object.entries(texts).map(([format, read]) => [format, textReader(read)] as const)

const readers: Readonly<Record<string, RowReader>> = {
  ...Object.fromEntries(textReaders),
  '.parquet': readParquet,
  ...Object.fromEntries(textReaders.map(([format, reader]) => [`${format}.gz`, reader])),
}

/** The extension that tells the format of a file, such as `.jsonl` and `.jsonl.gz`. */
function formatOf(path: string): string {
  const ending = extname(path).toLowerCase()
  return ending === '.gz' ? formatOf(basename(path, extname(path))) + ending : ending
}

/** A row and its file; `null` for a row in memory. */
export interface PlacedRow extends NumberedRow {
  readonly file: string | null
}

/** Reads the rows of any source, in order. Anything that cannot be read becomes a problem. */
export async function* readRows(source: DatasetSource, problems: ProblemList): AsyncIterable<PlacedRow> {
  const paths = pathsOf(source)
  if (paths === null) {
    if (isIterable(source)) for await (const row of numbered(source as AsyncIterable<unknown>, problems)) yield { ...row, file: null }
    else problems.add(`the dataset is ${describeSource(source)}; pass a path, a list of rows, or an async iterable of rows.`)
  }
  for (const path of paths ?? [])
    for (const file of await filesOf(path, problems.of(path))) {
      const reader = await chooseReader(file, problems.of(file))
      if (reader) for await (const row of reader(file, problems.of(file))) yield { ...row, file }
    }
}

/** The paths of a dataset; `null` for rows. */
export function pathsOf(source: DatasetSource): readonly string[] | null {
  if (typeof source === 'string') return [source]
  return Array.isArray(source) && source.length > 0 && source.every((path) => typeof path === 'string') ? source : null
}

/** The files of a path: the shards of a folder, or the path itself. */
async function filesOf(path: string, problems: ProblemList): Promise<readonly string[]> {
  const names = await readdir(path).catch(() => [])
  const isSaved = names.some((name) => name.endsWith('.arrow') || name === 'state.json' || name === 'dataset_dict.json')
  const hasFormat = (name: string) => Object.hasOwn(readers, formatOf(name))
  return !isSaved && names.some(hasFormat) ? await findShards(path, hasFormat, problems) : [path]
}

const isIterable = (value: unknown) =>
  typeof value === 'object' && value !== null && (Symbol.iterator in value || Symbol.asyncIterator in value)

function describeSource(value: unknown): string {
  if (typeof value === 'function') return 'a function'
  if (value instanceof Promise) return 'a promise'
  if (typeof value === 'object' && value !== null) return `an object with the keys ${Object.keys(value).join(', ') || '(none)'}`
  return typeof value === 'number' ? `the number ${value}` : String(value)
}

/** Numbers the rows of an iterable. An error of the iterable becomes a problem after the rows that it has yielded. */
async function* numbered(source: Iterable<unknown> | AsyncIterable<unknown>, problems: ProblemList): AsyncIterable<NumberedRow> {
  let number = 0
  const guarded = (async function* () {
    try {
      yield* source
    } catch (error) {
      problems.add(`reading stopped after row ${number} (${errorMessage(error)}).`)
    }
  })()
  for await (const row of guarded) yield { row, number: ++number }
}

async function chooseReader(path: string, problems: ProblemList): Promise<RowReader | null> {
  let isFolder: boolean
  let size: number
  try {
    const stats = await stat(path)
    isFolder = stats.isDirectory()
    size = stats.size
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    const hub = Object.hasOwn(readers, formatOf(path))
      ? ''
      : ' Hubs are never asked for a dataset: download it, and name its file or folder.'
    problems.add(code === 'ENOENT' ? `there is no such file; correct the path.${hub}` : `it cannot be opened (${message}).`)
    return null
  }
  if (isFolder) {
    const tasks = await findHarborTasks(path)
    return tasks.length > 0 ? (_, list) => readHarborTasks(tasks, list) : readArrowFolder
  }
  const format = formatOf(path)
  const reader = readers[format]
  if (!reader) {
    problems.add(
      `"${format}" is no format of a dataset; use ${Object.keys(readers).join(', ')} or a folder saved by Hugging Face datasets.`,
    )
    return null
  }
  if (size === 0) {
    problems.add('the file is empty; it needs at least one row.')
    return null
  }
  return reader
}

function textReader(read: (text: string, problems: ProblemList) => Iterable<NumberedRow>): RowReader {
  return async function* (path, problems) {
    const bytes = await readBytes(path, problems)
    const text = bytes && decodeText(bytes, problems)
    if (text === null) return
    if (text.trim() === '') problems.add('the file is empty; it needs at least one row.')
    else yield* read(text, problems)
  }
}

async function readBytes(path: string, problems: ProblemList): Promise<Buffer | null> {
  const bytes = await readFile(path)
  if (!/\.gz$/i.test(path)) return bytes
  try {
    return await unzip(bytes)
  } catch (error) {
    problems.add(`the file is not readable gzip (${(error as Error).message}); it may be truncated, write it again.`)
    return null
  }
}

/** Decodes UTF-8 text and drops a byte order mark. UTF-16 and other encodings are named in the problem. */
function decodeText(bytes: Buffer, problems: ProblemList): string | null {
  if ((bytes[0] === 0xff && bytes[1] === 0xfe) || (bytes[0] === 0xfe && bytes[1] === 0xff)) {
    problems.add('the file is UTF-16; save it as UTF-8.')
    return null
  }
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    problems.add(`the file is not valid UTF-8 (line ${badLine(bytes)}); save it as UTF-8.`)
    return null
  }
}

/** Finds the first line that is not UTF-8. A line feed is never part of a longer character. */
function badLine(bytes: Buffer): number {
  const decoder = new TextDecoder('utf-8', { fatal: true })
  let line = 1
  for (let start = 0; start < bytes.length; line++) {
    const feed = bytes.indexOf(10, start)
    const end = feed < 0 ? bytes.length : feed + 1
    try {
      decoder.decode(bytes.subarray(start, end))
    } catch {
      break
    }
    start = end
  }
  return line
}

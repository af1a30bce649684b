import { readFile, stat } from 'node:fs/promises'
import { extname } from 'node:path'
import { errorMessage } from '@aworld-train/protocol'
import type { DatasetSource } from './dataset-types.ts'
import type { NumberedRow } from './numbered-row.ts'
import type { ProblemList } from './problem-list.ts'
import { readArrowFolder } from './read-arrow-folder.ts'
import { readCsv } from './read-csv.ts'
import { readJsonLines, readJsonRows } from './read-json.ts'
import { readParquet } from './read-parquet.ts'

type RowReader = (path: string, problems: ProblemList) => AsyncIterable<NumberedRow>

const readers: Readonly<Record<string, RowReader>> = {
  '.jsonl': textReader(readJsonLines),
  '.ndjson': textReader(readJsonLines),
  '.json': textReader(readJsonRows),
  '.csv': textReader(readCsv),
  '.parquet': readParquet,
}

/** Rows of any source, in order; what cannot be read becomes a problem. */
export async function* readRows(source: DatasetSource, problems: ProblemList): AsyncIterable<NumberedRow> {
  if (typeof source !== 'string') {
    if (isIterable(source)) yield* numbered(source, problems)
    else problems.add(`the dataset is ${describeSource(source)}; pass a path, a list of rows, or an async iterable of rows.`)
    return
  }
  const reader = await chooseReader(source, problems)
  if (reader) yield* reader(source, problems)
}

const isIterable = (value: unknown) =>
  typeof value === 'object' && value !== null && (Symbol.iterator in value || Symbol.asyncIterator in value)

function describeSource(value: unknown): string {
  if (typeof value === 'function') return 'a function'
  if (value instanceof Promise) return 'a promise'
  if (typeof value === 'object' && value !== null) return `an object with the keys ${Object.keys(value).join(', ') || '(none)'}`
  return typeof value === 'number' ? `the number ${value}` : String(value)
}

/** Rows of an iterable. Where the iterable throws, its error becomes a problem after the rows that it has yielded. */
async function* numbered(source: Exclude<DatasetSource, string>, problems: ProblemList): AsyncIterable<NumberedRow> {
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
    problems.add(code === 'ENOENT' ? 'there is no such file; correct the path.' : `it cannot be opened (${message}).`)
    return null
  }
  if (isFolder) return readArrowFolder
  const reader = readers[extname(path).toLowerCase()]
  if (!reader) {
    problems.add(
      `"${extname(path)}" is no format of a dataset; use ${Object.keys(readers).join(', ')} or a folder saved by Hugging Face datasets.`,
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
    const text = decodeText(await readFile(path), problems)
    if (text === null) return
    if (text.trim() === '') problems.add('the file is empty; it needs at least one row.')
    else yield* read(text, problems)
  }
}

/** UTF-8 text without a byte order mark; UTF-16 and other encodings are named. */
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

/** The first line that is not UTF-8; a line feed never stands inside a character. */
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

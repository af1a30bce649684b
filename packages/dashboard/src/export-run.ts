import { createHash } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { basename } from 'node:path'
import { deflateRawSync } from 'node:zlib'
import { type RolloutRow, type RunSummary, type SampleSummary, type TaskSummary, type ToolCallRecord, TrainError } from '@aworld-train/core'
import { compareRuns } from './comparison.ts'
import type { ExportedComparison, ExportedRows, ExportedRun, ExportedTrace } from './export-data.ts'
import { type FolderClient, openFolder } from './folder-client.ts'
import { listRun } from './list-runs.ts'
import { type PageFiles, readPageFiles } from './page-files.ts'
import { mergeVocabularies } from './vocabularies.ts'

export interface ExportResult {
  readonly bytes: number
  readonly rollouts: number
  /** Number of rollouts whose tokens the file contains, and of those whose tokens cannot be read. */
  readonly whole: number
  readonly damaged: number
}

/** Default room for parts in one file. A browser opens them one by one. */
const defaultMaxBytes = 5_500_000
const rolloutsAPart = 64

/**
 * Writes runs as one page that opens from disk without server or network. If all tokens would exceed `maxBytes`, those
 * of some rollouts are left out.
 */
export async function exportRun(paths: readonly string[], file: string, maxBytes = defaultMaxBytes): Promise<ExportResult> {
  const page = readPageFiles()
  const parts: string[] = []
  const runs: ExportedRun[] = []
  const totals = { rollouts: 0, whole: 0, damaged: 0 }
  await using stack = new AsyncDisposableStack()
  const clients: FolderClient[] = []
  for (const path of paths) {
    const client = stack.adopt(await openFolder(path), (each) => each.close())
    clients.push(client)
    const { run, rollouts, whole, damaged } = await exportOne(path, client, parts, maxBytes / paths.length)
    runs.push(run)
    totals.rollouts += rollouts
    totals.whole += whole
    totals.damaged += damaged
  }
  const evaluations = runs.flatMap(({ listing: { id, kind } }, index) => (kind === 'evaluation' ? [{ id, client: clients[index]! }] : []))
  const comparisons = evaluations.flatMap((first) =>
    evaluations.flatMap((second): ExportedComparison[] =>
      first === second ? [] : [{ first: first.id, second: second.id, ...compareRuns(first.client, second.client) }],
    ),
  )
  const html = toHtml(page, { runs, comparisons }, parts)
  try {
    await writeFile(file, html)
  } catch (error) {
    throw new TrainError(
      'CONFIG_INVALID',
      `${file} could not be written: ${(error as Error).message}. Name a file in a folder that is there.`,
      {
        cause: error,
      },
    )
  }
  return { bytes: Buffer.byteLength(html), ...totals }
}

async function exportOne(path: string, client: FolderClient, parts: string[], maxBytes: number) {
  const summary = await client.summary()
  const rows: RolloutRow[] = []
  const tasks: Record<string, TaskSummary> = {}
  const samples: SampleSummary[] = []
  for (let after: string | undefined; ; ) {
    const page = await client.rollouts({ limit: 2_000, ...(after !== undefined && { after }) })
    rows.push(...page.rows)
    samples.push(...page.samples)
    Object.assign(tasks, page.tasks)
    if (page.next === null) break
    after = page.next
  }

  const vocabularies: Record<string, Record<number, string>> = {}
  const partOf = new Map<string, number>()
  let bytes = 0
  // Images hardly compress. Without a share of their own, a few would leave no room for tokens.
  let images = 0
  let damaged = 0
  const evidence = evidenceOf(summary)
  const others = rows.flatMap(({ key }) => (evidence.has(key) ? [] : [key]))
  for (const keys of [...Array.from(evidence, (key) => [key]), ...spread(chunks(others))]) {
    const traces: Record<string, ExportedTrace> = {}
    const texts: Record<string, Record<number, string>> = {}
    let ofPart = 0
    for (const key of keys) {
      const trace = await client.rollout(key).catch((error: TrainError) => {
        if (error.code !== 'STORE_CORRUPT') throw error
        damaged += 1
        return null
      })
      if (!trace) continue
      const { row: _row, task: _task, vocabularies: ofTrace, ...rest } = trace
      const imageBytes = sizeOfImages(rest.toolCalls)
      const isShown = images + ofPart + imageBytes <= maxBytes / 2
      if (isShown) ofPart += imageBytes
      traces[key] = isShown ? rest : { ...rest, toolCalls: rest.toolCalls.map(({ images: _images, ...call }) => call) }
      mergeVocabularies(texts, ofTrace)
    }
    const part = pack(traces)
    if (bytes + part.length > maxBytes) {
      if (evidence.has(keys[0]!)) continue
      break
    }
    bytes += part.length
    images += ofPart
    for (const key of Object.keys(traces)) partOf.set(key, parts.length)
    mergeVocabularies(vocabularies, texts)
    parts.push(part)
  }
  const carried = rows.map(({ key }) => partOf.get(key) ?? null)
  const lists: ExportedRows = { rows, tasks, samples, parts: carried, health: await client.health(0), vocabularies }
  parts.push(pack(lists))
  const numberOfRows = parts.length - 1
  const evaluation = await client.evaluation()
  if (evaluation) parts.push(pack(evaluation))
  const run = { listing: listRun(basename(path), path), summary, rows: numberOfRows, evaluation: evaluation && parts.length - 1 }
  return { run, rollouts: rows.length, whole: partOf.size, damaged }
}

/** Rollouts that findings and errors link to. They come first, each by itself, so that one that is too large excludes no other. */
function evidenceOf({ errors, incomplete, unparsed, repeated }: RunSummary): Set<string> {
  const ends = new Map(incomplete.toReversed().map(({ stopReason, status, key }) => [stopReason ?? status, key]))
  const failed = Object.values(errors).map(({ rollout }) => rollout)
  return new Set([...failed, ...ends.values(), ...unparsed.rollouts, ...repeated.first.map(({ key }) => key)])
}

const sizeOfImages = (calls: readonly ToolCallRecord[]) =>
  calls.reduce((sum, { images = [] }) => sum + images.reduce((length, { data }) => length + data.length, 0), 0)

const pack = (value: unknown) => deflateRawSync(JSON.stringify(value), { level: 9 }).toString('base64')

function chunks<T>(list: readonly T[]): T[][] {
  return Array.from({ length: Math.ceil(list.length / rolloutsAPart) }, (_, index) =>
    list.slice(index * rolloutsAPart, (index + 1) * rolloutsAPart),
  )
}

/** Reorders items so that the first few are spread over the whole list, by the reversed bits of their places. */
function spread<T>(list: readonly T[]): T[] {
  const bits = Math.ceil(Math.log2(Math.max(2, list.length)))
  const reversed = (place: number) => Number.parseInt(place.toString(2).padStart(bits, '0').split('').reverse().join(''), 2)
  return list
    .map((item, place) => ({ item, rank: reversed(place) }))
    .sort((a, b) => a.rank - b.rank)
    .map(({ item }) => item)
}

const hash = (text: string) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`

function toHtml({ html, assets }: PageFiles, data: unknown, parts: readonly string[]): string {
  const named = [...assets]
  const text = (extension: string) =>
    named
      .filter(([name]) => name.endsWith(extension))
      .map(([, { bytes }]) => bytes.toString())
      .join('\n')
  const script = text('.js').replaceAll('</script', '<\\/script')
  let style = text('.css')
  for (const [name, { bytes }] of named) {
    if (name.endsWith('.woff2')) style = style.replaceAll(name, `data:font/woff2;base64,${bytes.toString('base64')}`)
  }
  const policy = `default-src 'none'; script-src ${hash(script)}; style-src ${hash(style)}; font-src data:; img-src data:; base-uri 'none'; form-action 'none'`
  const body = [
    `<script type="application/json" id="data">${JSON.stringify(data).replaceAll('<', '\\u003c')}</script>`,
    ...parts.map((part, index) => `<script type="text/plain" id="part-${index}">${part}</script>`),
    `<script type="module">${script}</script>`,
  ]
  return html
    .replace(/<script [^>]*src=[^>]*><\/script>|<link rel="(?:stylesheet|modulepreload)"[^>]*>/g, '')
    .replace('<meta charset="utf-8">', (meta) => `${meta}<meta http-equiv="Content-Security-Policy" content="${policy}">`)
    .replace('</head>', () => `<style>${style}</style></head>`)
    .replace('</body>', () => `${body.join('\n')}\n</body>`)
}

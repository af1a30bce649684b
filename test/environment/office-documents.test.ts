import { existsSync } from 'node:fs'
import { openParserJail, openSandbox } from '@aworld-train/tools/sandbox'
import { utils, write } from '@e965/xlsx'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { toStoredArchive } from '../../packages/tools/src/documents/archive.ts'
import { csvServer } from '../../packages/tools/src/servers/csv/server.ts'
import { docxServer } from '../../packages/tools/src/servers/docx/server.ts'
import { pptxServer } from '../../packages/tools/src/servers/pptx/server.ts'
import { callServerTool, openToolContext, type TestToolContext } from '../../packages/tools/src/testing/tool-context.ts'
import type { ToolServer } from '../../packages/tools/src/tool-server.ts'
import { statusesOf } from './processes.ts'

const hasLibreOffice = existsSync('/usr/bin/soffice')
let context: TestToolContext
beforeAll(async () => {
  const parsers = await openParserJail({ isolation: 'bubblewrap' })
  context = await openToolContext({ parsers }, () => openSandbox({ tier: 'bubblewrap' }))
})
afterAll(async () => {
  await context.parsers.close()
  await context.close()
})

async function read(server: ToolServer, bytes: Buffer, settings: object = {}, path = 'file') {
  await context.workspace.put(path, bytes, context.signal)
  return (await callServerTool(server, server.tools[0]!.name, { file_path: path, ...settings }, context)).text
}

/** A document that LibreOffice writes in another format. */
async function convert(bytes: Buffer, from: string, to: string): Promise<Buffer> {
  await context.workspace.put(`source.${from}`, bytes, context.signal)
  const command = ['soffice', '-env:UserInstallation=file:///tmp/profile', '--headless', '--convert-to', to, `source.${from}`] as const
  const program = await context.workspace.program({ command, profile: 'graphical' }, context.signal)
  program.stdout.resume()
  expect(await program.ended, program.errors()).toBe(0)
  return await context.workspace.get(`source.${to}`, 2 ** 20, context.signal)
}

const namespaces = ['office', 'text', 'table', 'draw', 'presentation']
  .map((name) => {
    const place = { draw: 'drawing' }[name] ?? name
    return `xmlns:${name}="urn:oasis:names:tc:opendocument:xmlns:${place}:1.0"`
  })
  .join(' ')

/** A document of OpenDocument with this body. */
function opendocument(kind: string, body: string): Buffer {
  const type = `application/vnd.oasis.opendocument.${kind}`
  const entry = (path: string, type: string) => `<m:file-entry m:full-path="${path}" m:media-type="${type}"/>`
  const files = {
    mimetype: type,
    'META-INF/manifest.xml': `<m:manifest xmlns:m="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0">${entry('/', type)}${entry('content.xml', 'text/xml')}</m:manifest>`,
    'content.xml': `<office:document-content ${namespaces} office:version="1.2"><office:body>${body}</office:body></office:document-content>`,
  }
  return toStoredArchive(new Map(Object.entries(files).map(([name, text]) => [name, Buffer.from(text)])))
}

const sheet = utils.aoa_to_sheet([
  ['city', 'people'],
  ['Ulm', 126_000],
])
const workbookAs = (bookType: 'biff8' | 'ods') =>
  write({ SheetNames: ['One'], Sheets: { One: sheet } }, { type: 'buffer', bookType }) as Buffer

test.runIf(!hasLibreOffice)('without LibreOffice an error names the package that reads the document', { tags: ['quick'] }, async () => {
  await expect(read(csvServer, workbookAs('biff8'))).rejects.toThrow(/its operator runs: apt-get install libreoffice-calc-nogui$/)
  await expect(read(docxServer, Buffer.from('{\\rtf1 words}'))).rejects.toThrow(/apt-get install libreoffice-writer-nogui$/)
})

test.runIf(hasLibreOffice)('workbooks of other formats are tables, two at once too', async () => {
  const table = '| city | people |\n| --- | --- |\n| Ulm | 126000 |'
  const texts = (['biff8', 'ods'] as const).map((format) => read(csvServer, workbookAs(format), { include_statistics: false }, format))
  expect(await Promise.all(texts)).toEqual([table, table])
})

test.runIf(hasLibreOffice)('texts of other formats have their headings and tables', async () => {
  const row = (cell: string) => `<table:table-row><table:table-cell><text:p>${cell}</text:p></table:table-cell></table:table-row>`
  const table = `<table:table table:name="T"><table:table-column/>${row('City')}${row('Ulm')}</table:table>`
  const body = `<text:h text:outline-level="1">Budget</text:h><text:p>4711</text:p>${table}<text:p>End</text:p>`
  const open = opendocument('text', `<office:text>${body}</office:text>`)
  for (const bytes of [open, await convert(open, 'odt', 'doc'), await convert(open, 'odt', 'rtf')])
    expect(await read(docxServer, bytes)).toBe('# Budget\n\n4711\n\n| City |\n| --- |\n| Ulm |\n\nEnd')
})

test.runIf(hasLibreOffice)('presentations of other formats have their slides', async () => {
  const page = (name: string, text: string) =>
    `<draw:page draw:name="${name}"><draw:frame presentation:class="title"><draw:text-box><text:p>${text}</text:p></draw:text-box></draw:frame></draw:page>`
  const open = opendocument('presentation', `<office:presentation>${page('a', 'First')}${page('b', 'Second')}</office:presentation>`)
  for (const bytes of [open, await convert(open, 'odp', 'ppt')])
    expect(await read(pptxServer, bytes)).toMatch(/# Slide 1:?\s+First\s+# Slide 2:?\s+Second/)
})

test.runIf(hasLibreOffice)('a damaged document, and one whose call is cancelled, leave nothing behind', async () => {
  const damaged = opendocument('text', '<office:text><text:p>')
  await expect(read(docxServer, damaged)).rejects.toThrow('LibreOffice could not convert "file": it is damaged, protected by a password')
  const stopped = new AbortController()
  await context.workspace.put('file', workbookAs('ods'), context.signal)
  const call = callServerTool(csvServer, 'extract_csv_content', { file_path: 'file' }, { ...context, signal: stopped.signal })
  const running = () => statusesOf('/usr/lib/libreoffice/program/soffice.bin').length
  await vi.waitUntil(() => running() > 0, { timeout: 120_000 })
  stopped.abort(new Error('The call was cancelled.'))
  await expect(call).rejects.toThrow('cancelled')
  await vi.waitUntil(() => running() === 0, { timeout: 60_000 })
  const { output } = await context.workspace.run({ command: ['ls', '-A'], timeoutMs: 10_000 }, context.signal)
  expect(output).not.toContain('temporary')
})

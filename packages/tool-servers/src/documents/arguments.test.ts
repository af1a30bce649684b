import { ToolError } from '@aworld-train/core'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { csvServer } from '../servers/csv/server.ts'
import { docxServer } from '../servers/docx/server.ts'
import { pdfServer } from '../servers/pdf/server.ts'
import { pptxServer } from '../servers/pptx/server.ts'
import { txtServer } from '../servers/txt/server.ts'
import { buildPdf } from '../testing/build-pdf.ts'
import { docx, paragraph, pptx, shape } from '../testing/office-files.ts'
import { readFile } from '../testing/read-file.ts'

const documents = [
  [csvServer, Buffer.from('a,b\n1,2\n')],
  [docxServer, docx(paragraph('words'))],
  [pptxServer, pptx([{ shapes: shape('Title', 'words') }])],
  [pdfServer, buildPdf([[{ text: 'words', x: 72, y: 700, size: 12 }]])],
  [txtServer, Buffer.from('words')],
] as const

const naughty = [
  '',
  '\0',
  '\ud800',
  '\u202etxt',
  '../../etc/passwd',
  "'; DROP TABLE x; --",
  '{{7*7}}',
  '__proto__',
  'constructor',
  '%s%n',
  '"',
  '\\',
  '\r\n',
  'ÅÍÎÏ˝',
  '🚀'.repeat(100),
  'x'.repeat(100_000),
]
const wrong: readonly unknown[] = [null, -1, 0.5, 1e300, Number.NaN, true, {}, [], [[]], { toString: 'x' }, ...naughty]

test.each(documents)('any value in any argument of $name is a result or an error that names it', async (server, bytes) => {
  const [tool] = server.tools
  for (const name of Object.keys(tool!.input.shape)) {
    for (const value of wrong) {
      const parsed = tool!.input.safeParse({ file_path: 'file', [name]: value })
      if (!parsed.success) {
        expect(parsed.error.issues.every(({ path }) => path[0] === name)).toBe(true)
        continue
      }
      try {
        const { text } = await readFile(server, bytes, { [name]: value })
        expect(text.isWellFormed()).toBe(true)
      } catch (error) {
        expect(error).toBeInstanceOf(ToolError)
        expect((error as Error).message.length).toBeLessThan(500)
      }
    }
  }
})

test('halves of characters, written as references or cut apart, become U+FFFD', async () => {
  const halves = [
    await readFile(docxServer, docx(paragraph('a&#xD83D;b'))),
    await readFile(csvServer, `n\n${'x'.repeat(1_999)}🚀\n`),
    await readFile(pptxServer, pptx([{ shapes: shape('Title', 'a&#xD83D;b') }])),
  ]
  for (const { text, output } of halves) {
    expect(text).toContain('\ufffd')
    expect(JSON.stringify(output)).not.toMatch(/\\ud8/)
  }
})

test.each(documents)('$name answers the same text for the same file, and its schemas are JSON Schema', async (server, bytes) => {
  expect((await readFile(server, bytes)).text).toBe((await readFile(server, bytes)).text)
  for (const tool of server.tools) {
    expect(z.toJSONSchema(tool.input, { io: 'input' })).toMatchObject({ type: 'object' })
    expect(z.toJSONSchema(tool.output)).toMatchObject({ type: 'object' })
  }
})

test.each(documents)('$name lists the formats that it reads', async (server) => {
  const tool = server.tools.find(({ name }) => name === 'list_supported_formats')!
  expect(tool.toText(await tool.call({}, {} as never))).toMatch(/^\.\w+: /)
})

import { expect, test } from 'vitest'
import { csvServer } from '../servers/csv/server.ts'
import { docxServer } from '../servers/docx/server.ts'
import { pptxServer } from '../servers/pptx/server.ts'
import { docx, paragraph, pptx, shape } from '../testing/office-files.ts'
import { readFile } from '../testing/read-file.ts'

test.each([
  [docxServer, docx(paragraph('a&#xD83D;b'))],
  [pptxServer, pptx([{ shapes: shape('Title', 'a&#xD83D;b') }])],
  [csvServer, `n\n${'x'.repeat(1_999)}🚀\n`],
] as const)('halves of characters, written as references or cut apart, become U+FFFD: $name', async (server, bytes) => {
  const { text, output } = await readFile(server, bytes)
  expect(text).toContain('\ufffd')
  expect(JSON.stringify(output)).not.toMatch(/\\ud8/)
})

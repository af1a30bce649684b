import type { ParserJail } from '@aworld-train/core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openParserJail } from '../sandbox/parser/open-parser-jail.ts'
import { csvServer } from '../servers/csv/server.ts'
import { docxServer } from '../servers/docx/server.ts'
import { pdfServer } from '../servers/pdf/server.ts'
import { pptxServer } from '../servers/pptx/server.ts'
import { txtServer } from '../servers/txt/server.ts'
import { buildPdf } from '../testing/build-pdf.ts'
import { docx, paragraph, pptx, shape, workbook } from '../testing/office-files.ts'
import { openFileContext } from '../testing/read-file.ts'
import { callServerTool } from '../testing/tool-context.ts'
import type { ToolServer } from '../tool-server.ts'

let jail: ParserJail
beforeAll(async () => {
  jail = await openParserJail({ limits: { memoryBytes: 256 * 2 ** 20 } })
})
afterAll(() => jail.close())

async function read(server: ToolServer, bytes: Uint8Array): Promise<string> {
  const context = await openFileContext({ file: bytes }, { parsers: jail })
  return (await callServerTool(server, server.tools[0]!.name, { file_path: 'file' }, context)).text
}

test('documents of every format are read in the parser jail', async () => {
  const documents = [
    [csvServer, Buffer.from('a,b\nwords,2\n')],
    [csvServer, workbook('<sheetData><row r="1"><c r="A1" t="str"><v>words</v></c></row></sheetData>')],
    [docxServer, docx(paragraph('words'))],
    [pptxServer, pptx([{ shapes: shape('Title', 'words') }])],
    [pdfServer, buildPdf([[{ text: 'words', x: 72, y: 700, size: 12 }]])],
    [txtServer, Buffer.from('words')],
  ] as const
  const texts = await Promise.all(documents.map(([server, bytes]) => read(server, bytes)))
  for (const text of texts) expect(text).toContain('words')
})

test('a workbook that wants a link in every cell of Excel is an error for the model', async () => {
  const cells = '<sheetData><row r="1"><c r="A1"><v>1</v></c></row></sheetData>'
  const bytes = workbook(`${cells}<hyperlinks><hyperlink ref="A1:XFD1048576" location="x"/></hyperlinks>`)
  await expect(read(csvServer, bytes)).rejects.toThrow('takes more than 256 MB of memory to read')
})

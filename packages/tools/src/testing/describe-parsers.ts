import type { ParserJail } from '@aworld-train/core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { csvServer } from '../servers/csv/server.ts'
import { docxServer } from '../servers/docx/server.ts'
import { pdfServer } from '../servers/pdf/server.ts'
import { pptxServer } from '../servers/pptx/server.ts'
import { txtServer } from '../servers/txt/server.ts'
import { buildPdf } from './build-pdf.ts'
import { docx, paragraph, pptx, shape, workbook } from './office-files.ts'
import { openFileContext } from './read-file.ts'
import { callServerTool } from './tool-context.ts'

/** Tests that every parser of documents finds what it needs in the jail. */
export function describeParsers(name: string, open: () => Promise<ParserJail>): void {
  describe(`parsers in ${name}`, () => {
    let parsers: ParserJail
    beforeAll(async () => {
      parsers = await open()
    })
    afterAll(() => parsers.close())

    test.each([
      ['CSV', csvServer, 'words,more\n1,2\n'],
      ['XLSX', csvServer, workbook('<sheetData><row r="1"><c r="A1" t="inlineStr"><is><t>words</t></is></c></row></sheetData>')],
      ['DOCX', docxServer, docx(paragraph('words'))],
      ['PPTX', pptxServer, pptx([{ shapes: shape('Title 1', 'words') }])],
      ['PDF', pdfServer, buildPdf([[{ text: 'words', x: 72, y: 700, size: 12 }]])],
      ['text', txtServer, 'words'],
    ] as const)('%s is read', async (_, server, bytes) => {
      const context = await openFileContext({ file: bytes }, { parsers })
      expect((await callServerTool(server, server.tools[0]!.name, { file_path: 'file' }, context)).text).toContain('words')
    })
  })
}

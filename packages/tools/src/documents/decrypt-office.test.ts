import { expect, test } from 'vitest'
import { csvServer } from '../servers/csv/server.ts'
import { docxServer } from '../servers/docx/server.ts'
import { pdfServer } from '../servers/pdf/server.ts'
import { txtServer } from '../servers/txt/server.ts'
import { protectedFiles } from '../testing/protected-files.ts'
import { readFile } from '../testing/read-file.ts'

test.each([
  ['a workbook of Office 2010', csvServer, protectedFiles.agile, /^\| words \|\n/],
  ['a workbook of Office 2007', csvServer, protectedFiles.standard, /^\| words \|\n/],
  ['a PDF', pdfServer, protectedFiles.pdf, /^words$/],
] as const)('%s is opened by its password, and by no other', async (_, server, bytes, content) => {
  expect((await readFile(server, bytes, { password: 'secret' })).text).toMatch(content)
  await expect(readFile(server, bytes, { password: 'Secret' }, 'a')).rejects.toThrow(
    'The password does not open "a"; pass the right one as `password`.',
  )
  await expect(readFile(server, bytes, {}, 'a')).rejects.toThrow(
    '"a" is protected by a password: pass that as `password`, or ask for a copy without one.',
  )
})

test('another tool says which one reads what the password opens', async () => {
  await expect(readFile(txtServer, protectedFiles.agile)).rejects.toThrow('pass that to extract_docx_content, extract_csv_content or')
  await expect(readFile(docxServer, protectedFiles.agile, { password: 'secret' })).rejects.toThrow(
    'is an Excel workbook: read it with extract_csv_content',
  )
})

test('a damaged one says so', async () => {
  const damaged = Buffer.from(protectedFiles.agile)
  damaged.fill(0xff, 0x200, 0x600)
  await expect(readFile(csvServer, damaged, { password: 'secret' })).rejects.toThrow(/"file" .*(damaged|compound)/)
})

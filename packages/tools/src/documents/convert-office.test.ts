import { utils, write } from '@e965/xlsx'
import { expect, test } from 'vitest'
import { csvServer } from '../servers/csv/server.ts'
import { docxServer } from '../servers/docx/server.ts'
import { txtServer } from '../servers/txt/server.ts'
import { readFile } from '../testing/read-file.ts'

const workbook = (bookType: 'biff8' | 'ods') =>
  write({ SheetNames: ['One'], Sheets: { One: utils.aoa_to_sheet([['a']]) } }, { type: 'buffer', bookType }) as Buffer

test('where no program of the machine runs, the error says what reads the document', async () => {
  await expect(readFile(csvServer, workbook('ods'), {}, 'a.ods')).rejects.toThrow(
    'LibreOffice, which reads the format .ods of "a.ods", does not run in the tier "simulated"; the operator starts the environment on Linux with bubblewrap (apt-get install bubblewrap libreoffice-calc-nogui).',
  )
  await expect(readFile(csvServer, workbook('biff8'))).rejects.toThrow('LibreOffice, which reads the format .xls of')
  await expect(readFile(docxServer, '{\\rtf1 words}')).rejects.toThrow('bubblewrap libreoffice-writer-nogui)')
})

test('another tool names the one that reads the document', async () => {
  await expect(readFile(docxServer, workbook('biff8'))).rejects.toThrow('an Excel workbook of 97 to 2003: read it with extract_csv_content')
  await expect(readFile(txtServer, '{\\rtf1 words}')).rejects.toThrow('a text in RTF: read it with extract_docx_content')
})

import { CFB } from '@e965/xlsx'
import { expect, test } from 'vitest'
import { buildZip } from '../../testing/build-zip.ts'
import { describeToolServer } from '../../testing/describe-tool-server.ts'
import { docx, docxFiles, docxImage, docxTable, footnoteReference, paragraph } from '../../testing/office-files.ts'
import { openFileContext, readFile } from '../../testing/read-file.ts'
import { docxServer } from './server.ts'

const read = (bytes: Uint8Array, settings = {}, path?: string) => readFile(docxServer, bytes, settings, path)
const body = [
  paragraph('Budget 2025', 'Heading1'),
  paragraph('The secret number is 4711.'),
  docxTable([
    ['City', 'People'],
    ['Ulm', '126000'],
  ]),
  docxImage,
  footnoteReference,
].join('')

describeToolServer({
  server: docxServer,
  examples: { extract_docx_content: { file_path: 'file' }, list_supported_formats: {} },
  open: (overrides) => openFileContext({ file: docx(body) }, overrides),
})

test('headings, tables, images, footnotes, headers and footers are read', async () => {
  expect((await read(docx(body))).text).toBe(
    [
      '# Budget 2025',
      'The secret number is 4711.',
      '| City | People |\n| --- | --- |\n| Ulm | 126000 |',
      '![a chart](image)',
      'See[1]',
      '1. A note below. ↑',
      'Header: Confidential & new',
      'Footer: Page\t1',
      'Images in the file: word/media/image1.png (4 bytes)',
    ].join('\n\n'),
  )
})

test('what is not wanted is left out', async () => {
  const { text } = await read(docx(body), {
    output_format: 'text',
    extract_images: false,
    extract_tables: false,
    extract_headers_footers: false,
  })
  expect(text).toBe('Budget 2025\n\nThe secret number is 4711.\n\nSee[1]\n\n1. A note below. ↑')
})

test('JSON holds everything that was read', async () => {
  expect(JSON.parse((await read(docx(body), { output_format: 'json' })).text)).toMatchObject({
    content: expect.stringContaining('4711'),
    outline: [{ level: 1, heading: 'Budget 2025', offset: 0 }],
    headers: ['Confidential & new'],
    nextOffset: null,
  })
})

test('a long document comes in pages, with an outline to jump by', async () => {
  const long = docx(
    Array.from({ length: 20 }, (_, index) => paragraph(`Part ${index}`, 'Heading2') + paragraph('words '.repeat(50))).join(''),
  )
  const first = await read(long, { limit: 1_000 })
  const { offset } = (first.output['outline'] as { offset: number }[])[7]!
  expect(first.text).toContain(`  - Part 7 (offset ${offset})`)
  expect(first.text).toMatch(/\[Characters 1 to \d+ of \d+; continue with offset \d+\.\]$/)
  expect((await read(long, { limit: 1_000, offset })).text).toMatch(/^## Part 7\n/)
})

test('what cannot be read says why, and what to do', async () => {
  await expect(read(Buffer.alloc(0))).rejects.toThrow('"file" is empty')
  await expect(read(Buffer.from('a,b'), {}, 'a.docx')).rejects.toThrow('"a.docx" is plain text: read it with extract_text_content.')
  const legacy = CFB.utils.cfb_new()
  CFB.utils.cfb_add(legacy, '/WordDocument', 'x')
  await expect(read(CFB.write(legacy, { type: 'buffer' }) as Buffer)).rejects.toThrow('LibreOffice')
  const encrypted = CFB.utils.cfb_new()
  CFB.utils.cfb_add(encrypted, '/EncryptedPackage', 'x')
  await expect(read(CFB.write(encrypted, { type: 'buffer' }) as Buffer)).rejects.toThrow('is protected by a password')
  await expect(read(docx('<w:p>'))).rejects.toThrow(/could not be read as DOCX: .+ It is damaged/)
  const bomb = { ...docxFiles(''), 'word/document.xml': Buffer.alloc(2 ** 24) }
  await expect(read(buildZip(bomb))).rejects.toThrow('100 times its size')
})

test('elements nested 40,000 deep are an error', async () => {
  await expect(read(docx('<w:sdt><w:sdtContent>'.repeat(20_000) + '</w:sdtContent></w:sdt>'.repeat(20_000)))).rejects.toThrow(
    'nested too deeply',
  )
})

test('twenty thousand runs of one paragraph are one text', async () => {
  const { output } = await read(docx(`<w:p>${'<w:r><w:t>a</w:t></w:r>'.repeat(20_000)}</w:p>`))
  expect(output).toMatchObject({ total: 20_000 })
})

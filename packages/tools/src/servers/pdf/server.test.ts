import { execFileSync } from 'node:child_process'
import { expect, test } from 'vitest'
import { buildPdf } from '../../testing/build-pdf.ts'
import { describeToolServer } from '../../testing/describe-tool-server.ts'
import { openFileContext, readFile } from '../../testing/read-file.ts'
import { pdfServer } from './server.ts'

const read = (bytes: Uint8Array, settings = {}, path?: string) => readFile(pdfServer, bytes, settings, path)
const line = (text: string, y: number, x = 72, size = 12) => ({ text, x, y, size })

describeToolServer({
  server: pdfServer,
  examples: { convert_document_to_markdown: { file_path: 'file' }, list_supported_formats: {} },
  open: (overrides) => openFileContext({ file: buildPdf([[line('words', 700)]]) }, overrides),
})

test('headings, paragraphs and columns of a page become Markdown', async () => {
  const pdf = buildPdf([
    [
      line('Annual report', 780, 72, 24),
      line('Results', 740, 72, 16),
      line('The quick brown fox jumps', 720),
      line('over the lazy dog.', 706),
      line('A new paragraph.', 670),
      line('Column A', 630),
      line('Column B', 630, 300),
      line('a', 600),
      line('b c', 600, 92),
    ],
  ])
  expect((await read(pdf)).text).toBe(
    '# Annual report\n\n## Results\n\nThe quick brown fox jumps\nover the lazy dog.\n\nA new paragraph.\n\nColumn A\tColumn B\n\na\tb c',
  )
})

test('pages come in pages, with their numbers on demand', async () => {
  const pdf = buildPdf(Array.from({ length: 5 }, (_, index) => [line(`Page ${index + 1}`, 700)]))
  expect((await read(pdf, { limit: 2, paginate: true })).text).toBe(
    '--- page 1 ---\n\nPage 1\n\n--- page 2 ---\n\nPage 2\n\n[Pages 1 to 2 of 5; continue with offset 2.]',
  )
  expect((await read(pdf, { offset: 4 })).text).toBe('Page 5')
  await expect(read(pdf, { offset: 5 }, 'a.pdf')).rejects.toThrow('Offset 5 is behind the end of "a.pdf", which has 5 pages.')
})

test('the values of a form are told with the names that a person sees', async () => {
  const box = (name: string, value: string) => `/FT /Btn /T (${name}) /V /${value} /AS /${value} /AP << /N << /Yes null /Off null >> >>`
  const fields = [
    '/FT /Tx /T (f1) /TU (Your surname) /V (M\\374ller)',
    '/FT /Tx /T (empty) /V ()',
    '/FT /Ch /Ff 131072 /T (city) /V (Ulm) /Opt [(Ulm) (Bonn)]',
    '/FT /Ch /Ff 2097152 /T (many) /V [(a) (b)] /Opt [(a) (b) (c)]',
    box('agree', 'Yes'),
    box('deny', 'Off'),
    '/FT /Sig /T (signature)',
  ]
  expect((await read(buildPdf([[line('A form', 700)]], { fields }))).text).toBe(
    'A form\n\nForm fields:\n- Your surname: M\u00fcller\n- city: Ulm\n- many: a, b\n- agree: checked',
  )
  expect((await read(buildPdf([[]], { fields: fields.slice(0, 1) }))).text).toBe('Form fields:\n- Your surname: M\u00fcller')
})

test('a page without text is named, for it may be a scan', async () => {
  expect((await read(buildPdf([[], [line('words', 700)]]))).text).toBe(
    'words\n\n[Page 1: no text. A scan has only an image; read that with a tool for images.]',
  )
})

test('what cannot be read says why, and what to do', async () => {
  await expect(read(Buffer.alloc(0))).rejects.toThrow('is empty')
  await expect(read(Buffer.from('words'), {}, 'a.pdf')).rejects.toThrow('"a.pdf" is plain text: read it with extract_text_content.')
  await expect(read(buildPdf([[line('x', 700)]], { encrypted: true }))).rejects.toThrow(
    'is protected by a password: pass that as `password`, or ask for a copy without one.',
  )
  await expect(read(Buffer.from('%PDF-1.7\nnothing'))).rejects.toThrow(/could not be read as PDF: .+ It is damaged/)
})

test('a damaged PDF does not end the process that reads it', () => {
  const text = buildPdf([[line('Annual report', 780)], [line('words', 700)]]).toString('latin1')
  // Without these objects the reader ends well, and then rejects a promise that nobody waits for.
  const damaged = text.replace(/j\n3 0 obj[\s\S]*?\/F(?=1)/, '').replace(/ntents 7 0 R[\s\S]*?\(w/, '')
  const program = `import parse from ${JSON.stringify(new URL('./parse.ts', import.meta.url))}
    const bytes = Buffer.from(${JSON.stringify(damaged)}, 'latin1')
    const { total } = await parse(bytes, { file: 'a.pdf', offset: 0, limit: 5, maxCharacters: 1000 })
    setTimeout(() => console.log(total), 20)`
  expect(String(execFileSync(process.execPath, ['--input-type=module', '--eval', program], { stdio: 'pipe' }))).toBe('1\n')
})

test('a PDF that claims a million pages costs only those that it has', async () => {
  const pdf = Buffer.from(
    buildPdf([[line('words', 700)]])
      .toString('latin1')
      .replace('/Count 1 ', '/Count 1000000 '),
    'latin1',
  )
  expect((await read(pdf)).text).toContain('words')
})

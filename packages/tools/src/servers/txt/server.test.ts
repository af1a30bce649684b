import { expect, test } from 'vitest'
import { describeToolServer } from '../../testing/describe-tool-server.ts'
import { docx, paragraph } from '../../testing/office-files.ts'
import { openFileContext, readFile } from '../../testing/read-file.ts'
import { txtServer } from './server.ts'

const read = (bytes: Uint8Array | string, settings = {}, path?: string) => readFile(txtServer, bytes, settings, path)

describeToolServer({
  server: txtServer,
  examples: { extract_text_content: { file_path: 'file' }, list_supported_formats: {} },
  open: (overrides) => openFileContext({ file: 'words' }, overrides),
})

test.each([
  ['utf-8', Buffer.from('Grüße, 東京 🚀')],
  ['utf-8', Buffer.from('\ufeffGrüße, 東京 🚀')],
  ['utf-16le', Buffer.from('\ufeffGrüße, 東京 🚀', 'utf16le')],
  ['utf-16be', Buffer.from('\ufeffGrüße, 東京 🚀', 'utf16le').swap16()],
])('%s is detected', async (encoding, bytes) => {
  expect((await read(bytes)).output).toMatchObject({ content: 'Grüße, 東京 🚀', encoding, notices: [] })
})

test('UTF-16 without a mark and legacy encodings are detected', async () => {
  expect((await read(Buffer.from('plain words', 'utf16le'))).text).toBe(
    'plain words\n\n[The text is not UTF-8. It was read as utf-16le, which is a guess; if words look wrong, name its encoding.]',
  )
  expect((await read(Buffer.from('plain words', 'utf16le').swap16())).output).toMatchObject({ content: 'plain words' })
  const cyrillic = Buffer.from(
    [...'Все счастливые семьи похожи друг на друга, каждая несчастливая семья несчастлива по-своему'].map(toWindows1251),
  )
  expect((await read(cyrillic)).output).toMatchObject({
    encoding: 'windows-1251',
    content: expect.stringContaining('Все счастливые семьи'),
  })
  const western = Buffer.from('Le café est déjà fermé à Noël, monsieur', 'latin1')
  expect((await read(western)).output).toMatchObject({ content: 'Le café est déjà fermé à Noël, monsieur' })
})

test('a named encoding is used, in the spelling of Python too', async () => {
  expect((await read(Buffer.from([0x93, 0xfa, 0x96, 0x7b]), { encoding: 'Shift_JIS' })).text).toBe('日本')
  expect((await read(Buffer.from([0xe9]), { encoding: 'latin-1' })).text).toBe('é')
  await expect(read('x', { encoding: 'klingon' })).rejects.toThrow('cannot be decoded as "klingon". Pass another encoding, such as utf-8')
})

test('a long text comes in pages that say how to continue', async () => {
  const text = Array.from({ length: 100 }, (_, index) => `line ${index}\n`).join('')
  const first = await read(text, { max_content_length: 50 })
  expect(first.text).toBe(`${text.slice(0, 49)}\n\n[Characters 1 to 49 of 790; continue with offset 49.]`)
  const second = await read(text, { max_content_length: 50, offset: 49 })
  expect(second.output).toMatchObject({ offset: 49, total: 790, lines: 100, content: expect.stringMatching(/^line 7\n/) })
})

test('Markdown shows code in a fence that the code cannot close', async () => {
  expect((await read('{"a": "```"}', {}, 'a.json')).text).toBe('````json\n{"a": "```"}\n````')
  expect((await read('# Title', {}, 'a.md')).text).toBe('# Title')
  expect((await read('{"a": 1}', { output_format: 'text' }, 'a.json')).text).toBe('{"a": 1}')
  expect(JSON.parse((await read('{"a": 1}', { output_format: 'json' }, 'a.json')).text)).toMatchObject({
    content: '{"a": 1}',
    encoding: 'utf-8',
  })
})

test('NUL bytes and bytes without a character are shown as such', async () => {
  expect((await read(Buffer.from('a\0b\xffc', 'latin1'), { encoding: 'utf-8' })).text).toBe(
    'a\ufffdb\ufffdc\n\n[2 characters are shown as \ufffd: NUL, or no utf-8.]',
  )
  expect((await read(Buffer.alloc(100))).output).toMatchObject({ total: 100 })
})

test('a text that speaks of other formats is a text', async () => {
  expect((await read('A file that begins with %PDF-1.7 is a PDF.')).text).toContain('begins with')
})

test('other files are named for what they are, with the tool that reads them', async () => {
  await expect(read('')).rejects.toThrow('"file" is empty')
  await expect(read('%PDF-1.7\n', {}, 'a.txt')).rejects.toThrow('"a.txt" is a PDF: read it with convert_document_to_markdown.')
  await expect(read(Buffer.from('\x89PNG\r\n', 'latin1'))).rejects.toThrow('is an image')
  await expect(read(docx(paragraph('words')))).rejects.toThrow('read it with extract_docx_content')
})

function toWindows1251(character: string): number {
  const code = character.codePointAt(0)!
  return code >= 0x410 && code <= 0x44f ? code - 0x410 + 0xc0 : code
}

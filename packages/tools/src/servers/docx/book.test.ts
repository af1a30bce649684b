import { expect, test } from 'vitest'
import { toStoredArchive } from '../../documents/archive.ts'
import { readFile } from '../../testing/read-file.ts'
import { txtServer } from '../txt/server.ts'
import { docxServer } from './server.ts'

const page = (body: string) =>
  `<?xml version="1.0" encoding="utf-8"?>\n<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.1//EN" "http://www.w3.org/TR/xhtml11/DTD/xhtml11.dtd">\n<html xmlns="http://www.w3.org/1999/xhtml"><head><title/></head><body>${body}</body></html>`

/** A book of two chapters, which lie in its archive in the reverse order. */
function book(files: Readonly<Record<string, string>> = {}): Buffer {
  const all = {
    mimetype: 'application/epub+zip',
    'META-INF/container.xml': `<container><rootfiles><rootfile full-path='OPS/book.opf' media-type="application/oebps-package+xml"/></rootfiles></container>`,
    'OPS/book.opf': `<opf:package xmlns:opf="http://www.idpf.org/2007/opf" xmlns:dc="http://purl.org/dc/elements/1.1/"><opf:metadata><dc:title id="t">Tom &amp; Jerry</dc:title><dc:creator>A. Writer</dc:creator></opf:metadata><opf:manifest><opf:item id="b" href="text/two.html" media-type="x"/><opf:item id="a" href="text/one%20.xhtml" media-type="x"/></opf:manifest><opf:spine><opf:itemref idref="a"/><opf:itemref idref="b"/></opf:spine></opf:package>`,
    'OPS/text/two.html': page('<h1>Two</h1><table><tr><td>a</td><td>b</td></tr><tr><td>1</td><td>2</td></tr></table>'),
    'OPS/text/one .xhtml': page(
      '<h1><a id="x"/>One</h1><p>It was <em>dark</em>.<br/>See <a href="two.html">two</a>, <a href="https://example.com/">more</a>.</p>',
    ),
    'OPS/cover.jpg': 'pixels',
    ...files,
  }
  return toStoredArchive(new Map(Object.entries(all).map(([name, text]) => [name, Buffer.from(text)])))
}

const read = (bytes: Buffer, settings = {}) => readFile(docxServer, bytes, settings, 'a.epub')

test('the chapters of a book are read in its order, with title, tables and an outline', async () => {
  const { text, output } = await read(book())
  expect(text).toBe(
    [
      '# Tom & Jerry\n\nA. Writer',
      '# One\n\nIt was *dark*.\nSee two, [more](https://example.com/).',
      '# Two\n\n| a | b |\n| --- | --- |\n| 1 | 2 |',
      'Images in the file: OPS/cover.jpg (6 bytes)',
    ].join('\n\n'),
  )
  expect(output['outline']).toMatchObject([{ heading: 'Tom & Jerry' }, { heading: 'One' }, { heading: 'Two' }])
  expect((await read(book(), { extract_tables: false, extract_images: false })).text).toMatch(/# Two$/)
})

test('a book that cannot be read says why', async () => {
  const locked = '<encryption><CipherReference URI="OPS/text/one%20.xhtml"/></encryption>'
  await expect(read(book({ 'META-INF/encryption.xml': locked }))).rejects.toThrow('"a.epub" is protected against copying (DRM)')
  await expect(read(book({ 'META-INF/container.xml': '<container/>' }))).rejects.toThrow('its table of contents is missing')
  await expect(read(book({ 'OPS/text/two.html': page('<div>'.repeat(2_000)) }))).rejects.toThrow('2002 deep')
  await expect(readFile(txtServer, book())).rejects.toThrow('is an EPUB book: read it with extract_docx_content')
})

import { describe, expect, it } from 'vitest'
import parse, { type PageOptions, type ParsedPage } from './parse-page.ts'

const options: PageOptions = {
  name: 'The page',
  url: 'https://example.com/a/b',
  contentType: 'text/html',
  select: 'body',
  links: true,
  images: true,
  offset: 0,
  limit: 10_000,
}
const read = async (html: string | Buffer, rest: Partial<PageOptions> = {}) =>
  (await parse(Buffer.from(html), { ...options, ...rest })).content

describe('parse-page', () => {
  it.each([
    [
      'headings, lists and code',
      '<h2>A</h2><ul><li>b<li>c</ul><pre><code>x &lt; 1\n  y</code></pre>',
      '## A\n\n-   b\n-   c\n\n```\nx < 1\n  y\n```',
    ],
    [
      'links that can be followed',
      '<a href="../c?d#e">c</a> <a href="#top">top</a> <a href="mailto:a@b">mail</a>',
      '[c](https://example.com/c?d#e) top mail',
    ],
    [
      'a table, with what its cells hold',
      '<table><caption>C</caption><thead><tr><th>A|B</th><th></th></tr></thead><tr><td><p>1</p>\n<p>2</p></td><td>x<br><a href="/y">y</a></td></tr></table>',
      'C\n\n| A\\|B |  |\n| --- | --- |\n| 1 2 | x [y](https://example.com/y) |',
    ],
    ['tables that only place what is in them', '<table><tr><td><table><tr><td>x</td></tr></table></td></tr></table>', 'x'],
    ['nothing of scripts and forms', '<script>1</script><style>p{}</style><button>Go</button><p>text</p><noscript>no</noscript>', 'text'],
    ['text without any tag', 'just words', 'just words'],
  ])('shows %s', async (_, html, markdown) => {
    expect(await read(html)).toBe(markdown)
  })

  it.each([
    '',
    '<',
    '<html>',
    '<!DOCTYPE html>',
    '<p',
    '<table><table><tr>',
    '</p></div>',
    '<a href="http://[">x</a>',
    '<base href="::"><a href="b">x</a>',
    '\0\0',
    '<svg><p>',
  ])('reads %j without a fault', async (html) => {
    expect(typeof (await read(html))).toBe('string')
    expect(typeof (await read(html, { select: 'article' }))).toBe('string')
  })

  it('takes the whole page where its main text cannot be told', async () => {
    expect(await read('<div>short</div>', { select: 'article' })).toBe('short')
  })

  it('refuses elements that lie too deep in each other, and reads as a whole where they lie deep', async () => {
    await expect(read('<div>'.repeat(200_000))).rejects.toThrow('The page has elements 200000 deep in each other')
    expect(await read(`${'<div>'.repeat(900)}words`, { select: 'article' })).toBe('words')
    expect(await read('<p>word<br>'.repeat(5_000), { select: 'article', limit: 9 })).toBe('word\n\nwor')
  })

  it('goes on where it ended, and loses and repeats nothing', async () => {
    const html = `<p>${Array.from({ length: 300 }, (_, index) => `word${index} 😀`).join(' ')}</p>`
    let text = ''
    for (let offset: number | null = 0; offset !== null; ) {
      const page: ParsedPage = await parse(Buffer.from(html), { ...options, offset, limit: 257 })
      text += page.content
      offset = page.nextOffset
    }
    expect(text).toBe(await read(html))
  })
})

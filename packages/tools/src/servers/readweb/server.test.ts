import { afterAll, describe, expect, it } from 'vitest'
import { outwardSettings } from '../../settings/services.ts'
import { describeToolServer } from '../../testing/describe-tool-server.ts'
import { html, openStandIn } from '../../testing/stand-in.ts'
import { callServerTool } from '../../testing/tool-context.ts'
import { openWebBench, openWebContext } from '../../testing/web-context.ts'
import { tavilyStandIn } from '../googlesearch/stand-in.ts'
import { readwebServer } from './server.ts'

const story = Array.from(
  { length: 12 },
  (_, index) => `<p>Paragraph ${index} of the story, which has words enough to be taken for the main text of its page.</p>`,
)
const pages: Readonly<Record<string, string>> = {
  '/story': `<html><head><title>A story</title><base href="/deep/"></head><body><nav><a href="/">Home</a></nav><article><h1>A story</h1>
    <p>See <a href="more">more</a> and <a href="javascript:alert(1)">this</a>. <img src="/p.png" alt="A picture"></p>${story.join('')}</article>
    <script>alert('x')</script><footer>Imprint</footer></body></html>`,
  '/table': '<table><tr><th>City</th><th>People</th></tr><tr><td>Ulm</td><td>126,000</td></tr></table>',
}
const site = await openStandIn(({ url }) => {
  const page = pages[url.pathname]
  if (page) return html(page)
  if (url.pathname === '/latin')
    return { headers: { 'content-type': 'text/html; charset=iso-8859-1' }, body: Buffer.from('<p>gr\xfcn</p>', 'latin1') }
  if (url.pathname === '/meta')
    return { headers: { 'content-type': 'text/html' }, body: Buffer.from('<meta charset="windows-1251"><p>\xcc\xe8\xf0</p>', 'latin1') }
  if (url.pathname === '/text') return { headers: { 'content-type': 'text/plain' }, body: 'a < b\n' }
  if (url.pathname === '/pdf') return { headers: { 'content-type': 'application/octet-stream' }, body: '%PDF-1.7' }
  if (url.pathname === '/slow') return null
  if (url.pathname === '/moved') return { status: 301, headers: { location: '/table' }, body: '' }
  return html('<p>gone</p>', 404)
})
const tavily = await tavilyStandIn(
  () => [],
  (url) => (url.endsWith('/story') ? '# Read by Tavily' : null),
  'tvly-key',
)
const web = { mirrors: { 'https://pages.test': site.url } }
const bench = await openWebBench(readwebServer, { web })
const withTavily = (key: string) => {
  const settings = new Map([
    ['TAVILY_API_KEY', key],
    ['TAVILY_BASE_URL', tavily.url],
  ])
  return openWebBench(readwebServer, { services: outwardSettings(settings).services, web })
}
const keyed = await withTavily('tvly-key')
const refused = await withTavily('tvly-used-up')
afterAll(async () => {
  for (const each of [bench, keyed, refused, site, tavily]) await each.close()
})
const read = (path: string, input: object = {}) => bench.call('read_url', { url: `https://pages.test${path}`, ...input })

describeToolServer({
  server: readwebServer,
  examples: { read_url: { url: 'https://pages.test/story' } },
  open: (overrides) => openWebContext({ web }, overrides),
  slow: { tool: 'read_url', input: { url: 'https://pages.test/slow' } },
})

describe('readweb-server', () => {
  it('reads the main text of a page in pieces, with addresses that can be followed', async () => {
    expect(await read('/story', { limit: 300 })).toMatchInlineSnapshot(`
      "# A story
      https://pages.test/story

      See [more](https://pages.test/deep/more) and this.

      Paragraph 0 of the story, which has words enough to be taken for the main text of its page.

      Paragraph 1 of the story, which has words enough to be taken for the main text of its page.

      [Characters 1 to 238 of 1168; continue with offset 238.]"
    `)
    const rest = await read('/story', { offset: 300 })
    expect(rest).toContain('Paragraph 11')
    expect(rest).not.toMatch(/Imprint|alert|continue with/)
    expect(await read('/story', { include_images: true })).toContain('![A picture](https://pages.test/p.png)')
  })

  it('reads tables, plain text and the encodings that pages name', async () => {
    expect(await read('/table')).toBe('https://pages.test/table\n\n| City | People |\n| --- | --- |\n| Ulm | 126,000 |')
    expect(await read('/text')).toBe('https://pages.test/text\n\na < b')
    expect(await read('/latin')).toContain('grün')
    expect(await read('/meta')).toContain('Мир')
    expect(await read('/moved')).toContain('https://pages.test/table\n')
  })

  it('says what to do with what it cannot read', async () => {
    expect(await read('/none')).toBe('error: The page was answered with status 404; check the address, or search for another page.')
    expect(await read('/pdf')).toContain('error: This address leads to a file (pdf), not to a page; save it with download_file')
    expect(await read('/table', { offset: 99 })).toContain('error: Offset 99 is behind the end of The page')
    expect(await bench.call('read_url', { url: 'http://169.254.169.254/latest/meta-data' })).toContain(
      'error: 169.254.169.254 is not on the public web',
    )
  })

  it('lets Tavily read where its key is set, and reads itself what Tavily cannot', async () => {
    expect(await keyed.call('read_url', { url: 'https://pages.test/story' })).toBe('https://pages.test/story\n\n# Read by Tavily')
    expect(await keyed.call('read_url', { url: 'https://pages.test/table' })).toContain('| Ulm | 126,000 |')
  })

  it('reads a page itself where Tavily refuses its key, and says so beside the text', async () => {
    const input = { url: 'https://pages.test/table' }
    const { text, output } = await callServerTool(readwebServer, 'read_url', input, refused.context)
    expect(text).toBe(await bench.call('read_url', input))
    expect(output['notices']).toEqual([expect.stringMatching(/^Tavily did not read the page.*status 401/)])
  })
})

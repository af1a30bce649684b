import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { html, openStandIn } from '../testing/stand-in.ts'
import { openWebBench } from '../testing/web-context.ts'
import { downloadServer } from './download/server.ts'
import { googlesearchServer } from './googlesearch/server.ts'
import { searxngStandIn } from './googlesearch/stand-in.ts'
import { parxivServer } from './parxiv/server.ts'
import { arxivStandIn } from './parxiv/stand-in.ts'
import { readwebServer } from './readweb/server.ts'
import { waybackServer } from './wayback/server.ts'
import { waybackStandIn } from './wayback/stand-in.ts'
import { wikiServer } from './wiki/server.ts'
import { wikipediaStandIn } from './wiki/stand-in.ts'

const url = 'https://pages.test/a'
const calls = [
  [readwebServer, 'read_url', { url }],
  [readwebServer, 'read_url', { url: 'https://pages.test/none' }],
  [readwebServer, 'read_url', { url: 'http://10.0.0.5/' }],
  [downloadServer, 'download_file', { url, output_file_path: 'a.html', overwrite: true }],
  [wikiServer, 'get_article_content', { title: 'Ulm', language: 'de' }],
  [wikiServer, 'get_article_summary', { title: 'Nowhere' }],
  [parxivServer, 'search_papers', { query: 'attention' }],
  [waybackServer, 'get_archived_content', { url: 'http://example.com/', timestamp: '2020' }],
  [googlesearchServer, 'search_google', { query: 'Ulm' }],
] as const

it('a recorded world answers every tool as it did, without a network and without keys', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'world-'))
  const path = join(folder, 'world.jsonl')
  let visits = 0
  const site = await openStandIn(({ url: { pathname } }) => (pathname === '/a' ? html(`<p>Visit ${++visits}.</p>`) : html('gone', 404)))
  const wiki = await wikipediaStandIn({ en: [], de: [{ title: 'Ulm', html: '<p>Ulm ist eine Stadt.</p>' }] })
  const arxiv = await arxivStandIn([], () => null)
  const wayback = await waybackStandIn([{ url: 'http://example.com/', timestamp: '20200101000000', html: '<p>Old.</p>' }])
  const searxng = await searxngStandIn((query) => [{ title: query, url, snippet: '' }])
  const standIns = [site, wiki, arxiv, wayback, searxng]
  const services = Object.entries({ wikipedia: `${wiki.url}/*`, arxiv: arxiv.url, wayback: wayback.url, searxng: searxng.url })

  const readAll = async (mode: 'record' | 'replay') => {
    const outside =
      mode === 'replay'
        ? {}
        : { services: services.map(([name, baseUrl]) => ({ name, baseUrl })), web: { mirrors: { 'https://pages.test': site.url } } }
    const texts: string[] = []
    for (const [server, tool, input] of calls) {
      const bench = await openWebBench(server, { ...outside, cassette: { path, mode } })
      texts.push(await bench.call(tool, input))
      await bench.close()
    }
    return texts
  }
  const recorded = await readAll('record')
  expect(recorded).toContain(`${url}\n\nVisit 1.`)
  expect(recorded.filter((text) => text.startsWith('error: '))).toHaveLength(3)
  await Promise.all(standIns.map((standIn) => standIn.close()))
  expect(await readAll('replay')).toEqual(recorded)
  await rm(folder, { recursive: true })
})

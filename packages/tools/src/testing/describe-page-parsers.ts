import type { ParserJail } from '@aworld-train/core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { parxivServer } from '../servers/parxiv/server.ts'
import { arxivStandIn } from '../servers/parxiv/stand-in.ts'
import { readwebServer } from '../servers/readweb/server.ts'
import { html, openStandIn } from './stand-in.ts'
import { callServerTool, type TestToolContext } from './tool-context.ts'
import { openWebContext } from './web-context.ts'

/** Tests that the parsers of pages and of arXiv's feed find what they need in the jail, and that no page keeps another from being read. */
export function describePageParsers(name: string, open: () => Promise<ParserJail>): void {
  describe(`parsers of pages in ${name}`, () => {
    const closing: { close(): Promise<void> }[] = []
    let parsers: ParserJail
    let context: TestToolContext
    beforeAll(async () => {
      parsers = await open()
      const site = await openStandIn(({ url }) => html(url.pathname === '/deep' ? '<div>'.repeat(200_000) : '<p>Hello</p>'))
      const arxiv = await arxivStandIn([], () => null)
      const outside = { services: [{ name: 'arxiv', baseUrl: arxiv.url }], web: { mirrors: { 'https://pages.test': site.url } } }
      context = await openWebContext(outside, { parsers })
      closing.push(site, arxiv, parsers, context)
    })
    afterAll(async () => {
      for (const each of closing.toReversed()) await each.close()
    })

    it('read a page and a feed, and refuse a page that would keep them for minutes', async () => {
      const read = (path: string) => callServerTool(readwebServer, 'read_url', { url: `https://pages.test${path}` }, context)
      const texts = await Promise.all([
        read('/').then(({ text }) => text),
        callServerTool(parxivServer, 'search_papers', { query: 'a' }, context).then(({ text }) => text),
        read('/deep').catch((error: Error) => error.message),
      ])
      expect(texts).toEqual([
        'https://pages.test/\n\nHello',
        'arXiv has no such paper; try fewer or other words.',
        'The page has elements 200000 deep in each other, which takes too long to read; use another source.',
      ])
    })
  })
}

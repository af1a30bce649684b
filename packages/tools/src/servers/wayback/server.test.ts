import { afterAll, describe, expect, it } from 'vitest'
import { describeToolServer } from '../../testing/describe-tool-server.ts'
import { openWebBench, openWebContext } from '../../testing/web-context.ts'
import { waybackServer } from './server.ts'
import { waybackStandIn } from './stand-in.ts'

const url = 'http://example.com/news?page=2'
const long = 'http://example.com/long'
const page = (text: string) => `<html><head><title>News</title></head><body><nav><a href="/old">Old</a></nav><p>${text}</p></body></html>`
const archive = await waybackStandIn([
  { url, timestamp: '20200301120000', html: page('First of March.') },
  { url, timestamp: '20200302120000', html: page('First of March.') },
  { url, timestamp: '20210601080000', html: page('First of June.') },
  { url, timestamp: '20220101000000', html: page('New year.') },
  { url: long, timestamp: '20220401000000', html: page('A long page. '.repeat(60)) },
])
const outside = { services: [{ name: 'wayback', baseUrl: archive.url }] }
const bench = await openWebBench(waybackServer, outside)
afterAll(async () => {
  await bench.close()
  await archive.close()
})

describeToolServer({
  server: waybackServer,
  examples: { list_archived_versions: { url }, get_archived_content: { url, timestamp: '2020' }, get_wayback_capabilities: {} },
  open: (overrides) => openWebContext(outside, overrides),
})

describe('wayback-server', () => {
  it('lists the versions of a page that differ, in pieces and between dates', async () => {
    const list = (input: object = {}) => bench.call('list_archived_versions', { url, ...input })
    expect(await list({ limit: 2 })).toBe(`20200301120000 ${url} (text/html)\n20210601080000 ${url} (text/html)\n[Continue with offset 2.]`)
    expect(await list({ limit: 2, offset: 2 })).toBe(`20220101000000 ${url} (text/html)`)
    expect(await list({ from_date: '2021-01-01', to_date: '2021' })).toBe(`20210601080000 ${url} (text/html)`)
    expect(await list({ to_date: '1999' })).toBe('The Internet Archive has no version of this page then.')
  })

  it('reads the version nearest to a time, and says which that is', async () => {
    const read = (timestamp: string, input: object = {}) => bench.call('get_archived_content', { url, timestamp, ...input })
    expect(await read('2020-03')).toBe(`# News\n${url} as of 20200301120000\n\nOld\n\nFirst of March.`)
    expect(await read('20220101000000', { extract_text_only: false })).toContain('[Old](http://example.com/old)')
    expect(await read('20220401', { url: long, limit: 200 })).toContain('continue with offset')
    const cut = await read('20220401', { url: long, limit: 200, truncate_content: true })
    expect(cut).toMatch(/A long.*\.\.\.$/)
    expect(cut).not.toContain('continue with offset')
    expect(await read('2020-03', { truncate_content: true })).toBe(await read('2020-03'))
    expect(await bench.call('get_archived_content', { url: 'http://example.com/never', timestamp: '2020' })).toContain(
      'error: The Internet Archive has no such version',
    )
  })

  it('answers as JSON where it is told to', async () => {
    const json = async (name: string, input: object) => JSON.parse(await bench.call(name, { url, ...input, output_format: 'json' }))
    expect(await json('list_archived_versions', { limit: 1 })).toEqual({
      versions: [{ timestamp: '20200301120000', url, contentType: 'text/html' }],
      offset: 0,
      nextOffset: 1,
    })
    expect(await json('get_archived_content', { timestamp: '2020-03' })).toMatchObject({ title: 'News', timestamp: '20200301120000' })
  })

  it.each(['yesterday', '20', '2020-3-1', '2020; drop'])('does not take "%s" for a time', async (timestamp) => {
    await expect(bench.call('get_archived_content', { url, timestamp })).rejects.toThrow('YYYY')
  })
})

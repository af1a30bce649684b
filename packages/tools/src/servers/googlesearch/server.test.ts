import { afterAll, describe, expect, it } from 'vitest'
import { outwardSettings } from '../../settings/services.ts'
import { describeToolServer } from '../../testing/describe-tool-server.ts'
import { openStandIn } from '../../testing/stand-in.ts'
import { openWebBench, openWebContext } from '../../testing/web-context.ts'
import { googlesearchServer } from './server.ts'
import { googleStandIn, searxngStandIn, tavilyStandIn } from './stand-in.ts'

const find = (query: string) =>
  query === 'nothing'
    ? []
    : Array.from({ length: 12 }, (_, index) => ({
        title: `${query} ${index + 1}`,
        url: `https://example.com/${index + 1}`,
        snippet: `About\n  ${index + 1}`,
      }))
const standIns = {
  google: await googleStandIn(find, 'AIza-secret'),
  tavily: await tavilyStandIn(find, () => null, 'tvly-secret'),
  searxng: await searxngStandIn(find),
}
const closing: { close(): Promise<void> }[] = Object.values(standIns)
afterAll(async () => {
  for (const each of closing.toReversed()) await each.close()
})

const values = {
  google: { GOOGLE_API_KEY: 'AIza-secret', GOOGLE_CSE_ID: 'engine', GOOGLE_BASE_URL: standIns.google.url },
  tavily: { TAVILY_API_KEY: 'tvly-secret', TAVILY_BASE_URL: standIns.tavily.url },
  searxng: { SEARXNG_BASE_URL: standIns.searxng.url },
}
async function open(settings: Readonly<Record<string, string>>) {
  const bench = await openWebBench(googlesearchServer, outwardSettings(new Map(Object.entries(settings))))
  closing.push(bench)
  return bench
}

describeToolServer({
  server: googlesearchServer,
  examples: { search_google: { query: 'elements' }, get_search_capabilities: {} },
  open: (overrides) => openWebContext(outwardSettings(new Map(Object.entries(values.tavily))), overrides),
})

describe.each(['google', 'tavily', 'searxng'] as const)('googlesearch-server by %s', (engine) => {
  it('answers with a piece of the results, without times and identifiers of the request', async () => {
    const bench = await open(values[engine])
    const first = await bench.call('search_google', { query: 'elements', num_results: 2 })
    const results = ['1. elements 1\nhttps://example.com/1\nAbout 1', '2. elements 2\nhttps://example.com/2\nAbout 2']
    expect(first).toBe([...results, '[Continue with offset 2.]'].join('\n\n'))
    expect(await bench.call('search_google', { query: 'elements', num_results: 2 })).toBe(first)
    const last = await bench.call('search_google', { query: 'elements', num_results: 4, offset: 8 })
    expect(last).toContain('12. elements 12')
    expect(last).not.toContain('Continue')
    const {
      offset,
      results: [only],
    } = JSON.parse(await bench.call('search_google', { query: 'elements', num_results: 1, output_format: 'json' }))
    expect([offset, only]).toMatchObject([0, { title: 'elements 1', url: 'https://example.com/1' }])
    expect(await bench.call('search_google', { query: 'nothing' })).toBe('Nothing was found; try other words.')
  })
})

describe('googlesearch-server', () => {
  it('asks the first engine that is configured', async () => {
    const both = await open({ ...values.searxng, ...values.tavily })
    expect(await both.call('get_search_capabilities')).toContain('asks Tavily')
    expect(await (await open({ ...values.tavily, ...values.google })).call('get_search_capabilities')).toContain('asks Google')
  })

  it('names what an operator sets where no engine is configured', async () => {
    expect(await (await open({})).call('search_google', { query: 'a' })).toBe(
      'error: No search engine is configured; go on without searching. Set GOOGLE_API_KEY and GOOGLE_CSE_ID, or TAVILY_API_KEY, or SEARXNG_BASE_URL.',
    )
  })

  it('says that a key is refused, without the key', async () => {
    const answer = await (await open({ ...values.google, GOOGLE_API_KEY: 'AIza-wrong' })).call('search_google', { query: 'a' })
    expect(answer).toContain('error: Google answered with status 400')
    expect(answer).toContain('API key not valid: [redacted].')
  })

  it('says what a SearXNG without JSON needs, and that an answer is none', async () => {
    const refusing = await openStandIn(({ url }) =>
      url.searchParams.get('q') === 'page' ? { body: '<html>' } : { status: 403, body: 'Forbidden' },
    )
    closing.push(refusing)
    const bench = await open({ SEARXNG_BASE_URL: refusing.url })
    expect(await bench.call('search_google', { query: 'a' })).toContain('add "json" to search.formats')
    expect(await bench.call('search_google', { query: 'page' })).toBe('error: SearXNG answered with something that is no JSON: <html>')
  })

  it('tells the engine of languages, countries and pages for adults', async () => {
    const bench = await open(values.google)
    await bench.call('search_google', { query: 'a', language: 'de', country: 'at', safe_search: false })
    expect(standIns.google.requests.at(-1)!.url.search).toContain('num=5&start=1&safe=off&lr=lang_de&gl=at')
  })
})

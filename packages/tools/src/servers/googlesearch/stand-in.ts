import { json, openStandIn, type StandIn } from '../../testing/stand-in.ts'
import type { SearchResult } from './engines.ts'

type Find = (query: string) => readonly SearchResult[]

/** Answers as Google's Custom Search does. */
export function googleStandIn(find: Find, key: string): Promise<StandIn> {
  return openStandIn(({ url }) => {
    const parameter = (name: string) => url.searchParams.get(name) ?? ''
    if (parameter('key') !== key)
      return json({ error: { code: 400, message: `API key not valid: ${parameter('key')}.`, status: 'INVALID_ARGUMENT' } }, 400)
    const results = find(parameter('q'))
    const start = Number(parameter('start') || 1) - 1
    const end = start + Number(parameter('num') || 10)
    const items = results.slice(start, end).map(({ title, url: link, snippet }) => ({ kind: 'customsearch#result', title, link, snippet }))
    const request = [
      { searchTerms: parameter('q'), count: items.length, startIndex: start + 1, safe: parameter('safe'), cx: parameter('cx') },
    ]
    const nextPage = end < results.length ? { nextPage: [{ startIndex: end + 1 }] } : {}
    return json({
      kind: 'customsearch#search',
      queries: { request, ...nextPage },
      searchInformation: { searchTime: Math.random() },
      ...(items.length > 0 && { items }),
    })
  })
}

/** Answers searches and extractions as Tavily does. */
export function tavilyStandIn(find: Find, extract: (url: string) => string | null, key: string): Promise<StandIn> {
  return openStandIn(({ url, headers, body }) => {
    if (headers.authorization !== `Bearer ${key}`) return json({ detail: { error: 'Unauthorized: missing or invalid API key.' } }, 401)
    const search = JSON.parse(body)
    const meta = { response_time: Math.random(), request_id: crypto.randomUUID() }
    if (url.pathname === '/search') {
      const results = find(search.query).slice(0, search.max_results)
      return json({
        query: search.query,
        answer: null,
        images: [],
        results: results.map(({ snippet, ...rest }, index) => ({ ...rest, content: snippet, score: 1 - index / 100, raw_content: null })),
        ...meta,
      })
    }
    const pages = (search.urls as string[]).map((each) => ({ url: each, raw_content: extract(each) }))
    return json({
      results: pages.filter(({ raw_content }) => raw_content !== null).map((page) => ({ ...page, images: [] })),
      failed_results: pages
        .filter(({ raw_content }) => raw_content === null)
        .map((page) => ({ url: page.url, error: 'Failed to fetch url' })),
      ...meta,
    })
  })
}

const searxngPageSize = 4

/** Answers as a SearXNG instance with the JSON format does. */
export function searxngStandIn(find: Find): Promise<StandIn> {
  return openStandIn(({ url }) => {
    const query = url.searchParams.get('q') ?? ''
    const start = (Number(url.searchParams.get('pageno') ?? 1) - 1) * searxngPageSize
    const results = find(query).slice(start, start + searxngPageSize)
    return json({
      query,
      number_of_results: 0,
      results: results.map(({ snippet, ...rest }) => ({
        ...rest,
        content: snippet,
        engine: 'duckduckgo',
        engines: ['duckduckgo'],
        score: 1,
        category: 'general',
      })),
      answers: [],
      corrections: [],
      infoboxes: [],
      suggestions: [],
      unresponsive_engines: [],
    })
  })
}

import { ToolError } from '@aworld-train/core'
import { z } from 'zod'
import { jsonAnswer } from '../../json-answer.ts'
import type { ServerToolContext } from '../../tool-server.ts'

export interface SearchRequest {
  readonly query: string
  readonly safe: boolean
  readonly language: string
  readonly country: string
  readonly offset: number
  readonly count: number
}

export interface SearchResult {
  readonly title: string
  readonly url: string
  readonly snippet: string
}

export interface SearchPage {
  readonly results: readonly SearchResult[]
  readonly more: boolean
}

/** A search engine, and the number of results that it gives in all. */
export interface SearchEngine {
  readonly service: string
  readonly label: string
  readonly maxResults: number
  search(request: SearchRequest, context: ServerToolContext): Promise<SearchPage>
}

const text = z
  .string()
  .nullish()
  .transform((value) => value ?? '')
const googleAnswer = z.object({
  items: z.array(z.object({ title: text, link: z.string(), snippet: text })).default([]),
  queries: z.object({ nextPage: z.array(z.unknown()).optional() }).optional(),
})
const resultList = z.object({ results: z.array(z.object({ title: text, url: z.string(), content: text })) })
const toResults = ({ results }: z.output<typeof resultList>): SearchResult[] =>
  results.map(({ title, url, content }) => ({ title, url, snippet: content }))

const google: SearchEngine = {
  service: 'google',
  label: 'Google',
  maxResults: 100,
  async search({ query, safe, language, country, offset, count }, { outward, signal }) {
    const parameters = new URLSearchParams({ q: query, num: String(count), start: String(offset + 1), safe: safe ? 'active' : 'off' })
    if (language !== '') parameters.set('lr', `lang_${language}`)
    if (country !== '') parameters.set('gl', country)
    const answer = jsonAnswer('Google', await outward.service('google', `/v1?${parameters}`, {}, signal), googleAnswer)
    const results = answer.items.map(({ title, link, snippet }) => ({ title, url: link, snippet }))
    return { results, more: answer.queries?.nextPage !== undefined && results.length > 0 }
  },
}

const tavily: SearchEngine = {
  service: 'tavily',
  label: 'Tavily',
  maxResults: 20,
  /** Tavily has no pages, so a later one is requested together with all before it. */
  async search({ query, safe, offset, count }, { outward, signal }) {
    const body = JSON.stringify({ query, max_results: Math.min(20, offset + count + 1), search_depth: 'basic', safe_search: safe })
    const headers = { 'content-type': 'application/json' }
    const answer = await outward.service('tavily', '/search', { method: 'POST', headers, body }, signal)
    const results = toResults(jsonAnswer('Tavily', answer, resultList))
    return { results: results.slice(offset, offset + count), more: results.length > offset + count }
  },
}

/** Most pages of SearXNG that are requested, because it does not say how long they are. */
const searxngPages = 5

const searxng: SearchEngine = {
  service: 'searxng',
  label: 'SearXNG',
  maxResults: 100,
  async search({ query, safe, language, offset, count }, { outward, signal }) {
    const results: SearchResult[] = []
    for (let page = 1; page <= searxngPages && results.length <= offset + count; page++) {
      const parameters = new URLSearchParams({ q: query, format: 'json', pageno: String(page), safesearch: safe ? '1' : '0' })
      if (language !== '') parameters.set('language', language)
      const answer = await outward.service('searxng', `/search?${parameters}`, {}, signal)
      if (answer.status === 403)
        throw new ToolError('SearXNG answers no JSON; its operator has to add "json" to search.formats in its settings.yml.')
      const found = toResults(jsonAnswer('SearXNG', answer, resultList))
      if (found.length === 0) break
      results.push(...found)
    }
    return { results: results.slice(offset, offset + count), more: results.length > offset + count }
  },
}

/** Search engines in order of preference. The first configured one is used. */
export const searchEngines: readonly SearchEngine[] = [google, tavily, searxng]

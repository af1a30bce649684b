import { ToolError } from '@aworld-train/core'
import { z } from 'zod'
import { defineFormattedTool, defineTool, type ServerToolContext, type ToolServer } from '../../tool-server.ts'
import { type SearchEngine, searchEngines } from './engines.ts'

const remedy = 'Set GOOGLE_API_KEY and GOOGLE_CSE_ID, or TAVILY_API_KEY, or SEARXNG_BASE_URL.'

function engineOf({ outward }: ServerToolContext): SearchEngine {
  const engine = searchEngines.find(({ service }) => outward.hasService(service))
  if (engine) return engine
  throw new ToolError(`No search engine is configured; go on without searching. ${remedy}`)
}

const code = (description: string) =>
  z
    .string()
    .regex(/^([a-z]{2,3}(-[a-z0-9]+)*)?$/i)
    .default('')
    .describe(description)

const searchGoogle = defineFormattedTool({
  name: 'search_google',
  description: 'Searches the web. It answers with titles, addresses and a few words of each page; read one with read_url.',
  input: z.object({
    query: z.string().trim().min(1).max(400).describe('What to search for.'),
    num_results: z.int().min(1).max(10).default(5).describe('How many results to answer with.'),
    safe_search: z.boolean().default(true).describe('Whether pages for adults are left out.'),
    language: code('Language of the pages, such as "en"; any where empty.'),
    country: code('Country of the searcher, such as "us"; none where empty.'),
    offset: z
      .int()
      .min(0)
      .max(99)
      .default(0)
      .describe('How many results to skip. An answer that has more says with which offset to continue.'),
  }),
  output: z.object({
    engine: z.string(),
    results: z.array(z.object({ title: z.string(), url: z.string(), snippet: z.string() })),
    offset: z.int(),
    nextOffset: z.int().nullable(),
  }),
  async call({ query, num_results, safe_search, language, country, offset }, context) {
    const engine = engineOf(context)
    const count = Math.min(num_results, engine.maxResults - offset)
    if (count <= 0) throw new ToolError(`${engine.label} gives ${engine.maxResults} results in all; search for something narrower.`)
    const { results, more } = await engine.search({ query, safe: safe_search, language, country, offset, count }, context)
    const end = offset + results.length
    return {
      engine: engine.label,
      results: [...results],
      offset,
      nextOffset: more && end < engine.maxResults ? end : null,
    }
  },
  toText({ results, offset, nextOffset }) {
    if (results.length === 0) return offset === 0 ? 'Nothing was found; try other words.' : 'There are no more results.'
    const lines = results.map(
      ({ title, url, snippet }, index) => `${offset + index + 1}. ${title}\n${url}\n${snippet.replace(/\s+/g, ' ').trim()}`,
    )
    return [...lines, ...(nextOffset === null ? [] : [`[Continue with offset ${nextOffset}.]`])].join('\n\n')
  },
})

export const googlesearchServer: ToolServer = {
  name: 'googlesearch-server',
  scope: 'search',
  description: 'Searches the web by Google, Tavily or SearXNG, whichever is configured.',
  needs: [{ anyOf: searchEngines.map(({ service }) => service), remedy }],
  tools: [
    searchGoogle,
    defineTool({
      name: 'get_search_capabilities',
      description: 'Says which search engine search_google asks, and how many results it gives.',
      input: z.object({}),
      output: z.object({ engine: z.string(), maxResults: z.int() }),
      async call(_, context) {
        const { label, maxResults } = engineOf(context)
        return { engine: label, maxResults }
      },
      toText: ({ engine, maxResults }) => `search_google asks ${engine}, which gives ${maxResults} results at most, 10 in one answer.`,
    }),
  ],
}

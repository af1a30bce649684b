import { ToolError } from '@aworld-train/core'
import { z } from 'zod'
import { pageOfText } from '../../documents/page.ts'
import { jsonAnswer } from '../../json-answer.ts'
import { pageFields, pageLimit, pageOffset, pageText } from '../../pages/read-page.ts'
import { defineTool, type ToolServer } from '../../tool-server.ts'
import { articleUrl, askWiki, type PageFacts, queryArticle, readArticle } from './wikipedia.ts'

const title = z.string().trim().min(1).max(255).describe('Title of the article, as search_wikipedia names it.')
const language = z
  .string()
  .regex(/^[a-z]{2,12}(-[a-z]+)*$/)
  .default('en')
  .describe('Language of the wiki, such as "en" or "de".')

const found = z.object({
  pages: z.array(z.object({ title: z.string(), excerpt: z.string().nullish(), description: z.string().nullish() })),
})

/** The words of an excerpt, whose hits are marked in HTML. */
const plain = (excerpt: string) =>
  excerpt
    .replace(/<[^>]*>/g, '')
    .replace(/&quot;/g, '"')
    .replace(/&#0?39;/g, "'")
    .replace(/&lt;/g, '<')
    .replace(/&gt;/g, '>')
    .replace(/&amp;/g, '&')

const searchWikipedia = defineTool({
  name: 'search_wikipedia',
  description: 'Finds articles of Wikipedia: their titles, and a few words of each.',
  input: z.object({
    query: z.string().trim().min(1).max(300).describe('What to search for.'),
    limit: z.int().min(1).max(50).default(10).describe('How many articles.'),
    language,
  }),
  output: z.object({ articles: z.array(z.object({ title: z.string(), description: z.string(), excerpt: z.string() })) }),
  async call({ query, limit, language }, context) {
    const parameters = new URLSearchParams({ q: query, limit: String(limit) })
    const { pages } = jsonAnswer('Wikipedia', await askWiki(language, `/w/rest.php/v1/search/page?${parameters}`, context), found)
    return {
      articles: pages.map(({ title, description, excerpt }) => ({ title, description: description ?? '', excerpt: plain(excerpt ?? '') })),
    }
  },
  toText: ({ articles }) =>
    articles
      .map(({ title, description, excerpt }, index) => `${index + 1}. ${title}${description && ` (${description})`}\n${excerpt}`)
      .join('\n\n') || 'Nothing was found; try other words.',
})

const articleOutput = z.object({ title: z.string(), url: z.string(), ...pageFields })

const getArticleContent = defineTool({
  name: 'get_article_content',
  description: 'Reads an article of Wikipedia as Markdown, tables included. Long articles come in pieces.',
  input: z.object({
    title,
    language,
    include_full_content: z.boolean().default(true).describe('Whether to read all of it; else its introduction, as plain text.'),
    offset: pageOffset,
    limit: pageLimit,
  }),
  output: articleOutput,
  async call({ title, language, include_full_content, offset, limit }, context) {
    if (!include_full_content) {
      const facts = await queryArticle({ title, language }, { prop: 'extracts', exintro: '1', explaintext: '1' }, context)
      const introduction = facts.extract?.trim() ?? ''
      if (offset > 0 && offset >= introduction.length)
        throw new ToolError(`Offset ${offset} is behind the end of the introduction, which has ${introduction.length} characters.`)
      const page = pageOfText('The introduction', introduction, { offset, limit })
      return { ...page, title: facts.title, url: articleUrl({ title: facts.title, language }) }
    }
    const { url, page } = await readArticle({ title, language }, null, { offset, limit }, context)
    return { ...page, title: page.title || title, url }
  },
  toText: (article) => pageText(`# ${article.title}`, article),
})

const getArticleSummary = defineTool({
  name: 'get_article_summary',
  description: 'Reads the first sentences of an article of Wikipedia.',
  input: z.object({ title, sentences: z.int().min(1).max(10).default(5).describe('How many sentences.'), language }),
  output: z.object({ title: z.string(), summary: z.string() }),
  async call({ title, sentences, language }, context) {
    const properties = { prop: 'extracts', exintro: '1', explaintext: '1', exsentences: String(sentences) }
    const facts = await queryArticle({ title, language }, properties, context)
    return { title: facts.title, summary: facts.extract?.trim() ?? '' }
  },
  toText: ({ title, summary }) => `# ${title}\n\n${summary || 'The article has no introduction; read it with get_article_content.'}`,
})

/** A tool that lists titles of one kind, some at a time. */
const titlesTool = (
  tool: { readonly name: string; readonly description: string },
  properties: Readonly<Record<string, string>>,
  titlesOf: (facts: PageFacts) => readonly string[],
) =>
  defineTool({
    ...tool,
    input: z.object({
      title,
      language,
      limit: z.int().min(1).max(500).default(100).describe('How many to list.'),
      offset: z.int().min(0).default(0).describe('How many to skip.'),
    }),
    output: z.object({
      title: z.string(),
      titles: z.array(z.string()),
      offset: z.int(),
      total: z.int(),
      isComplete: z.boolean(),
      nextOffset: z.int().nullable(),
    }),
    async call({ title, language, limit, offset }, context) {
      const facts = await queryArticle({ title, language }, properties, context)
      const titles = titlesOf(facts)
      const end = offset + limit
      const nextOffset = end < titles.length ? end : null
      const { title: fullTitle, isComplete } = facts
      return { title: fullTitle, titles: titles.slice(offset, end), offset, total: titles.length, isComplete, nextOffset }
    },
    toText({ titles, total, isComplete, offset, nextOffset }) {
      const end = isComplete ? '' : '[There are more, which cannot be listed; read the article with get_article_content.]'
      if (titles.length === 0) return end || (offset === 0 ? 'There are none.' : 'There are no more.')
      const all = isComplete ? total : `more than ${total}`
      const place = nextOffset === null ? end : `[${offset + 1} to ${nextOffset} of ${all}; continue with offset ${nextOffset}.]`
      return [...titles, ...(place ? [place] : [])].join('\n')
    },
  })

const getArticleCategories = titlesTool(
  { name: 'get_article_categories', description: 'Lists the categories of an article of Wikipedia.' },
  { prop: 'categories', clshow: '!hidden', cllimit: 'max' },
  ({ categories }) => categories!.map((category) => category.title.replace(/^[^:]*:/, '')),
)

const getArticleLinks = titlesTool(
  { name: 'get_article_links', description: 'Lists the articles that an article of Wikipedia links to, by name.' },
  { prop: 'links', plnamespace: '0', pllimit: 'max' },
  ({ links }) => links!.map((link) => link.title),
)

const getArticleHistory = defineTool({
  name: 'get_article_history',
  description: 'Reads an article of Wikipedia as it was at the end of a day.',
  input: z.object({
    title,
    date: z.iso.date().describe('The day, as YYYY-MM-DD.'),
    language,
    offset: pageOffset,
    limit: pageLimit,
  }),
  output: articleOutput.extend({ revision: z.int(), revisedAt: z.string() }),
  async call({ title, date, language, offset, limit }, context) {
    const properties = { prop: 'revisions', rvprop: 'ids|timestamp', rvlimit: '1', rvdir: 'older', rvstart: `${date}T23:59:59Z` }
    const { title: fullTitle, revisions: [revision] = [] } = await queryArticle({ title, language }, properties, context, 1)
    if (!revision) throw new ToolError(`The article "${fullTitle}" did not exist yet on ${date}; ask for a later day.`)
    const { url, page } = await readArticle({ title: fullTitle, language }, revision.revid, { offset, limit }, context)
    return { ...page, title: fullTitle, url: `${url}?oldid=${revision.revid}`, revision: revision.revid, revisedAt: revision.timestamp }
  },
  toText: (article) => pageText(`# ${article.title}\nRevision of ${article.revisedAt}`, article),
})

export const wikiServer: ToolServer = {
  name: 'wiki-server',
  scope: 'search',
  description: 'Finds and reads articles of Wikipedia, in every language, and as they were on a day.',
  needs: [],
  tools: [
    searchWikipedia,
    getArticleContent,
    getArticleSummary,
    getArticleCategories,
    getArticleLinks,
    getArticleHistory,
    defineTool({
      name: 'get_wikipedia_capabilities',
      description: 'Says what the tools of Wikipedia take.',
      input: z.object({}),
      output: z.object({ defaultLanguage: z.string() }),
      call: async () => ({ defaultLanguage: 'en' }),
      toText: () =>
        'search_wikipedia finds titles; get_article_content, get_article_summary, get_article_categories, get_article_links and get_article_history take one. Every wiki is there by its language, such as "en", "de" or "zh".',
    }),
  ],
}

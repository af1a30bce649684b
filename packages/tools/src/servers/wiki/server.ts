import { ToolError } from '@aworld-train/core'
import { z } from 'zod'
import { pageOfText } from '../../documents/page.ts'
import { pageFields, pageLimit, pageOffset, pageText } from '../../pages/read-page.ts'
import { defineFormattedTool, defineTool, type ServerToolContext, type ToolServer } from '../../tool-server.ts'
import { type Article, articleUrl, type PageFacts, queryArticle, readArticle, readByTitle, searchWiki } from './wikipedia.ts'

const title = z.string().trim().min(1).max(255).describe('Title of the article, as search_wikipedia names it.')
const language = z
  .string()
  .regex(/^[a-z]{2,12}(-[a-z]+)*$/)
  .default('en')
  .describe('Language of the wiki, such as "en" or "de".')
const autoSuggest = z
  .boolean()
  .default(false)
  .describe('Whether to take the first article that a search finds, where there is none of this title.')
const redirect = z.boolean().default(true).describe('Whether a title that only leads to another article is read as that one.')

const introductionProperties = { prop: 'extracts', exintro: '1', explaintext: '1' }

/** The text of an excerpt, without the HTML that marks its hits. */
const plain = (excerpt: string) =>
  excerpt
    .replace(/<[^>]*>/g, '')
    .replace(/&quot;/g, '"')
    .replace(/&#0?39;/g, "'")
    .replace(/&lt;/g, '<')
    .replace(/&gt;/g, '>')
    .replace(/&amp;/g, '&')

const searchWikipedia = defineFormattedTool({
  name: 'search_wikipedia',
  description: 'Finds articles of Wikipedia: their titles, and a few words of each.',
  input: z.object({
    query: z.string().trim().min(1).max(300).describe('What to search for.'),
    limit: z.int().min(1).max(50).default(10).describe('How many articles.'),
    language,
  }),
  output: z.object({ articles: z.array(z.object({ title: z.string(), description: z.string(), excerpt: z.string() })) }),
  async call({ query, limit, language }, context) {
    const pages = await searchWiki(query, language, limit, context)
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

/** An article as Markdown, or its introduction as plain text. */
async function readContent(
  article: Article,
  isFull: boolean,
  place: { readonly offset: number; readonly limit: number },
  context: ServerToolContext,
): Promise<z.output<typeof articleOutput>> {
  if (isFull) {
    const { url, page } = await readArticle(article, null, place, context)
    return { ...page, title: page.title || article.title, url }
  }
  const { title, extract = '' } = await queryArticle(article, introductionProperties, context)
  const introduction = extract.trim()
  if (place.offset > 0 && place.offset >= introduction.length)
    throw new ToolError(`Offset ${place.offset} is behind the end of the introduction, which has ${introduction.length} characters.`)
  return { ...pageOfText('The introduction', introduction, place), title, url: articleUrl({ ...article, title }) }
}

const getArticleContent = defineFormattedTool({
  name: 'get_article_content',
  description: 'Reads an article of Wikipedia as Markdown, tables included. Long articles come in pieces.',
  input: z.object({
    title,
    language,
    auto_suggest: autoSuggest,
    redirect,
    include_full_content: z.boolean().default(true).describe('Whether to read all of it; else its introduction, as plain text.'),
    offset: pageOffset,
    limit: pageLimit,
  }),
  output: articleOutput,
  call: ({ title, language, include_full_content, offset, limit, ...reading }, context) =>
    readByTitle({ title, language }, reading, (article) => readContent(article, include_full_content, { offset, limit }, context), context),
  toText: (article) => pageText(`# ${article.title}`, article),
})

const getArticleSummary = defineFormattedTool({
  name: 'get_article_summary',
  description: 'Reads the first sentences of an article of Wikipedia.',
  input: z.object({
    title,
    sentences: z.int().min(1).max(10).default(5).describe('How many sentences.'),
    language,
    auto_suggest: autoSuggest,
    redirect,
  }),
  output: z.object({ title: z.string(), summary: z.string() }),
  async call({ title, sentences, language, ...reading }, context) {
    const properties = { ...introductionProperties, exsentences: String(sentences) }
    const read = (article: Article) => queryArticle(article, properties, context)
    const facts = await readByTitle({ title, language }, reading, read, context)
    return { title: facts.title, summary: facts.extract?.trim() ?? '' }
  },
  toText: ({ title, summary }) => `# ${title}\n\n${summary || 'The article has no introduction; read it with get_article_content.'}`,
})

/** Makes a tool that lists titles of one kind, some at a time. */
const titlesTool = (
  tool: { readonly name: string; readonly description: string },
  properties: Readonly<Record<string, string>>,
  titlesOf: (facts: PageFacts) => readonly string[],
) =>
  defineFormattedTool({
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

const getArticleHistory = defineFormattedTool({
  name: 'get_article_history',
  description: 'Reads an article of Wikipedia as it was at the end of a day.',
  input: z.object({
    title,
    date: z.iso.date().describe('The day, as YYYY-MM-DD.'),
    language,
    auto_suggest: autoSuggest,
    offset: pageOffset,
    limit: pageLimit,
  }),
  output: articleOutput.extend({ revision: z.int(), revisedAt: z.string() }),
  async call({ title, date, language, auto_suggest, offset, limit }, context) {
    const properties = { prop: 'revisions', rvprop: 'ids|timestamp', rvlimit: '1', rvdir: 'older', rvstart: `${date}T23:59:59Z` }
    const read = (article: Article) => queryArticle(article, properties, context, 1)
    const { title: fullTitle, revisions: [revision] = [] } = await readByTitle({ title, language }, { auto_suggest }, read, context)
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

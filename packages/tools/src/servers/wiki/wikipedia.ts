import { type OutwardResponse, ToolError } from '@aworld-train/core'
import { z } from 'zod'
import { jsonAnswer } from '../../json-answer.ts'
import { readPage } from '../../pages/read-page.ts'
import type { ServerToolContext } from '../../tool-server.ts'

export interface Article {
  readonly title: string
  readonly language: string
}

/** Parts that a reader does not miss: reference marks, navigation boxes, hints to editors. */
const drop = [
  'style',
  'sup.reference',
  '.mw-editsection',
  '.navbox',
  '.metadata',
  '.ambox',
  '.noprint',
  '.mw-empty-elt',
  '.reflist',
  '.catlinks',
  '.hatnote',
]

class NoArticleError extends ToolError {
  constructor({ title, language }: Article) {
    super(`The Wikipedia in "${language}" has no article "${title}"; find its title with search_wikipedia.`)
  }
}

/** Asks the wiki of a language. */
function askWiki(language: string, path: string, { outward, signal }: ServerToolContext): Promise<OutwardResponse> {
  return outward.service(`wikipedia:${language}`, path, {}, signal)
}

const pageFacts = z.object({
  title: z.string(),
  missing: z.boolean().optional(),
  invalid: z.boolean().optional(),
  extract: z.string().optional(),
  categories: z.array(z.object({ title: z.string() })).optional(),
  links: z.array(z.object({ title: z.string() })).optional(),
  revisions: z.array(z.object({ revid: z.int(), timestamp: z.string() })).optional(),
})
const query = z.object({
  continue: z.record(z.string(), z.union([z.string(), z.int()])).optional(),
  query: z.object({ pages: z.array(pageFacts), redirects: z.array(z.object({ to: z.string() })).optional() }).optional(),
})

/** The wiki's facts about an article. */
export type PageFacts = z.output<typeof pageFacts> & {
  /** Whether the wiki has answered with all of them. */
  readonly isComplete: boolean
  /** Title of the article that was read, if the requested title only leads to it. */
  readonly leadsTo: string | undefined
}

/** Most rounds of one query, which make 5,000 links. */
const mostRounds = 10

/** Asks for the wiki's facts about an article, including those that it answers in several rounds. */
export async function queryArticle(
  article: Article,
  properties: Readonly<Record<string, string>>,
  context: ServerToolContext,
  maxRounds = mostRounds,
): Promise<PageFacts> {
  let facts = null as PageFacts | null
  let further: Record<string, string | number> | undefined = {}
  for (let round = 0; round < maxRounds && further; round++) {
    const parameters = new URLSearchParams({
      action: 'query',
      format: 'json',
      formatversion: '2',
      redirects: '1',
      titles: article.title,
      ...properties,
    })
    for (const [name, value] of Object.entries(further)) parameters.set(name, String(value))
    const answer = jsonAnswer('Wikipedia', await askWiki(article.language, `/w/api.php?${parameters}`, context), query)
    const page: z.output<typeof pageFacts> | undefined = answer.query?.pages[0]
    if (!page || page.missing || page.invalid) throw new NoArticleError(article)
    facts = {
      ...facts,
      ...page,
      links: [...(facts?.links ?? []), ...(page.links ?? [])],
      categories: [...(facts?.categories ?? []), ...(page.categories ?? [])],
      isComplete: answer.continue === undefined,
      leadsTo: answer.query?.redirects?.[0]?.to,
    }
    further = answer.continue
  }
  return facts!
}

const found = z.object({
  pages: z.array(z.object({ title: z.string(), excerpt: z.string().nullish(), description: z.string().nullish() })),
})

/** Searches the wiki. The best results come first. */
export async function searchWiki(words: string, language: string, limit: number, context: ServerToolContext) {
  const parameters = new URLSearchParams({ q: words, limit: String(limit) })
  return jsonAnswer('Wikipedia', await askWiki(language, `/w/rest.php/v1/search/page?${parameters}`, context), found).pages
}

export interface TitleReading {
  /** Whether the first search result is read if there is no article of that title. */
  readonly auto_suggest: boolean
  /** Whether a title that only leads to another article is read as that one; else it is a ToolError. */
  readonly redirect?: boolean
}

/** Reads an article by its title. */
export async function readByTitle<Result>(
  article: Article,
  { auto_suggest, redirect = true }: TitleReading,
  read: (article: Article) => Promise<Result>,
  context: ServerToolContext,
): Promise<Result> {
  const readOne = async (one: Article) => {
    const target = redirect ? undefined : (await queryArticle(one, { prop: 'info' }, context)).leadsTo
    if (target === undefined) return await read(one)
    throw new ToolError(`"${one.title}" only leads to the article "${target}"; ask for that one, or leave redirect out.`)
  }
  return await readOne(article).catch(async (error: unknown) => {
    const [first] = auto_suggest && error instanceof NoArticleError ? await searchWiki(article.title, article.language, 1, context) : []
    if (!first) throw error
    return await readOne({ ...article, title: first.title })
  })
}

/** The name of an article in paths. */
const pathName = (title: string) => encodeURIComponent(title.trim().toWellFormed().replaceAll(' ', '_'))

/** The address at which people read an article. */
export const articleUrl = ({ title, language }: Article) => `https://${language}.wikipedia.org/wiki/${pathName(title)}`

/** Reads an article, or one of its revisions, as Markdown. */
export async function readArticle(
  article: Article,
  revision: number | null,
  place: { readonly offset: number; readonly limit: number },
  context: ServerToolContext,
) {
  const name = pathName(article.title)
  const path = revision === null ? `/w/rest.php/v1/page/${name}/html` : `/w/rest.php/v1/revision/${revision}/html`
  const answer = await askWiki(article.language, path, context)
  if (answer.status === 404) throw new NoArticleError(article)
  if (answer.status !== 200) throw new ToolError(`Wikipedia answered with status ${answer.status}; try again, or read another article.`)
  const url = articleUrl(article)
  return {
    url,
    page: await readPage(answer, { name: 'The article', url, select: 'body', drop, links: false, images: false, ...place }, context),
  }
}

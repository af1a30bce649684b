import { type OutwardResponse, ToolError } from '@aworld-train/core'
import { z } from 'zod'
import { jsonAnswer } from '../../json-answer.ts'
import { readPage } from '../../pages/read-page.ts'
import type { ServerToolContext } from '../../tool-server.ts'

export interface Article {
  readonly title: string
  readonly language: string
}

/** What a reader does not miss: marks of references, boxes for moving about, hints to editors. */
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

const noArticle = ({ title, language }: Article) =>
  new ToolError(`The Wikipedia in "${language}" has no article "${title}"; find its title with search_wikipedia.`)

/** Asks the wiki of a language. */
export function askWiki(language: string, path: string, { outward, signal }: ServerToolContext): Promise<OutwardResponse> {
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
  query: z.object({ pages: z.array(pageFacts) }).optional(),
})

/** What the wiki knows of an article; `isComplete` where it has answered with all of it. */
export type PageFacts = z.output<typeof pageFacts> & { readonly isComplete: boolean }

/** Answers of one query that are asked for at most: of links, 5,000. */
const mostRounds = 10

/** What the wiki knows of an article, with what it answers in several rounds. */
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
    if (!page || page.missing || page.invalid) throw noArticle(article)
    facts = {
      ...facts,
      ...page,
      links: [...(facts?.links ?? []), ...(page.links ?? [])],
      categories: [...(facts?.categories ?? []), ...(page.categories ?? [])],
      isComplete: answer.continue === undefined,
    }
    further = answer.continue
  }
  return facts!
}

/** The name of an article as paths have it. */
const pathName = (title: string) => encodeURIComponent(title.trim().toWellFormed().replaceAll(' ', '_'))

/** Where people read an article. */
export const articleUrl = ({ title, language }: Article) => `https://${language}.wikipedia.org/wiki/${pathName(title)}`

/** An article, or one of its revisions, as Markdown. */
export async function readArticle(
  article: Article,
  revision: number | null,
  place: { readonly offset: number; readonly limit: number },
  context: ServerToolContext,
) {
  const name = pathName(article.title)
  const path = revision === null ? `/w/rest.php/v1/page/${name}/html` : `/w/rest.php/v1/revision/${revision}/html`
  const answer = await askWiki(article.language, path, context)
  if (answer.status === 404) throw noArticle(article)
  if (answer.status !== 200) throw new ToolError(`Wikipedia answered with status ${answer.status}; try again, or read another article.`)
  const url = articleUrl(article)
  return {
    url,
    page: await readPage(answer, { name: 'The article', url, select: 'body', drop, links: false, images: false, ...place }, context),
  }
}

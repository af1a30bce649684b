import { html, json, openStandIn, type StandIn } from '../../testing/stand-in.ts'

export interface StandInArticle {
  readonly title: string
  /** Titles that lead to it. */
  readonly redirects?: readonly string[]
  readonly description?: string
  readonly html: string
  readonly summary?: string
  readonly categories?: readonly string[]
  readonly links?: readonly string[]
  /** Oldest first. */
  readonly revisions?: readonly { readonly id: number; readonly timestamp: string; readonly html: string }[]
}

/** Number of links and categories in a round of a query, so small that more of them take several rounds. */
const roundSize = 3

const page = (title: string, body: string) => html(`<!DOCTYPE html><html><head><title>${title}</title></head><body>${body}</body></html>`)

/** Answers as the REST and action APIs of MediaWiki do. Its base URL ends with `/*`, for the languages. */
export function wikipediaStandIn(languages: Readonly<Record<string, readonly StandInArticle[]>>): Promise<StandIn> {
  const notFound = json({ errorKey: 'rest-nonexistent-title', httpCode: 404, httpReason: 'Not Found' }, 404)
  return openStandIn(({ url }) => {
    const [, language = '', path = ''] = /^\/([^/]+)(\/.*)$/.exec(decodeURIComponent(url.pathname)) ?? []
    const articles = languages[language] ?? []
    const find = (title: string) => {
      const name = title.replaceAll('_', ' ').toLowerCase()
      return articles.find((article) => [article.title, ...(article.redirects ?? [])].some((each) => each.toLowerCase() === name))
    }
    if (path === '/w/rest.php/v1/search/page') {
      const words = url.searchParams.get('q')!.toLowerCase()
      const hits = articles.filter(({ title, html: body }) => `${title} ${body}`.toLowerCase().includes(words))
      const pages = hits.slice(0, Number(url.searchParams.get('limit'))).map(({ title, description = null }, id) => ({
        id,
        key: title.replaceAll(' ', '_'),
        title,
        excerpt: `about <span class="searchmatch">${words}</span> &amp; more`,
        matched_title: null,
        description,
        thumbnail: null,
      }))
      return json({ pages })
    }
    const named = /^\/w\/rest\.php\/v1\/page\/(.+)\/html$/.exec(path)
    if (named) {
      const article = find(named[1]!)
      return article ? page(article.title, article.html) : notFound
    }
    const revised = /^\/w\/rest\.php\/v1\/revision\/(\d+)\/html$/.exec(path)
    if (revised) {
      const found = articles
        .flatMap(({ title, revisions = [] }) => revisions.map((each) => ({ title, ...each })))
        .find(({ id }) => id === Number(revised[1]))
      return found ? page(found.title, found.html) : notFound
    }
    if (path !== '/w/api.php') return notFound
    const title = url.searchParams.get('titles')!
    const article = find(title)
    if (!article) return json({ batchcomplete: true, query: { pages: [{ ns: 0, title, missing: true }] } })
    const facts = { pageid: 1, ns: 0, title: article.title }
    const answer = (rest: object, next?: object) =>
      json({
        ...next,
        batchcomplete: !next,
        query: { ...(title !== article.title && { redirects: [{ from: title, to: article.title }] }), pages: [{ ...facts, ...rest }] },
      })
    const round = (titles: readonly string[], parameter: string, rest: (part: { ns: number; title: string }[]) => object) => {
      const start = Number(url.searchParams.get(parameter) ?? 0)
      const end = start + roundSize
      const part = titles.slice(start, end).map((each) => ({ ns: 0, title: each }))
      return answer(rest(part), end < titles.length ? { continue: { [parameter]: String(end), continue: '||' } } : undefined)
    }
    switch (url.searchParams.get('prop')) {
      case 'extracts':
        return answer({
          extract: (article.summary ?? '')
            .split(/(?<=\.) /)
            .slice(0, Number(url.searchParams.get('exsentences') ?? Infinity))
            .join(' '),
        })
      case 'categories':
        return round(
          (article.categories ?? []).map((name) => `Category:${name}`),
          'clcontinue',
          (categories) => ({ categories }),
        )
      case 'links':
        return round(article.links ?? [], 'plcontinue', (links) => ({ links }))
      default: {
        const before = (article.revisions ?? []).filter(({ timestamp }) => timestamp <= url.searchParams.get('rvstart')!).at(-1)
        return answer(
          { revisions: before ? [{ revid: before.id, timestamp: before.timestamp }] : undefined },
          before && { continue: { rvcontinue: 'x', continue: '||' } },
        )
      }
    }
  })
}

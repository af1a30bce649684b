import { openStandIn, type StandIn } from '../../testing/stand-in.ts'
import type { Paper } from './parse-atom.ts'

const escapeXml = (text: string) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;')

const entry = (paper: Paper) => `  <entry>
    <id>http://arxiv.org/abs/${paper.id}</id>
    <updated>${paper.updated}</updated>
    <published>${paper.published}</published>
    <title>${escapeXml(paper.title)}</title>
    <summary>  ${escapeXml(paper.summary)}
</summary>
${paper.authors.map((name) => `    <author>\n      <name>${escapeXml(name)}</name>\n    </author>`).join('\n')}
    <arxiv:doi xmlns:arxiv="http://arxiv.org/schemas/atom">${paper.doi}</arxiv:doi>
    <link href="http://arxiv.org/abs/${paper.id}" rel="alternate" type="text/html"/>
    <link title="pdf" href="http://arxiv.org/pdf/${paper.id}" rel="related" type="application/pdf"/>
    <arxiv:comment xmlns:arxiv="http://arxiv.org/schemas/atom">${escapeXml(paper.comment)}</arxiv:comment>
    <arxiv:journal_ref xmlns:arxiv="http://arxiv.org/schemas/atom">${escapeXml(paper.journal)}</arxiv:journal_ref>
    <arxiv:primary_category xmlns:arxiv="http://arxiv.org/schemas/atom" term="${paper.primaryCategory}" scheme="http://arxiv.org/schemas/atom"/>
${paper.categories.map((term) => `    <category term="${term}" scheme="http://arxiv.org/schemas/atom"/>`).join('\n')}
  </entry>`

const feed = (entries: readonly string[], total: number, start: number) => `<?xml version="1.0" encoding="UTF-8"?>
<feed xmlns="http://www.w3.org/2005/Atom">
  <title type="html">ArXiv Query</title>
  <id>http://arxiv.org/api/feed</id>
  <updated>2026-01-01T00:00:00-04:00</updated>
  <opensearch:totalResults xmlns:opensearch="http://a9.com/-/spec/opensearch/1.1/">${total}</opensearch:totalResults>
  <opensearch:startIndex xmlns:opensearch="http://a9.com/-/spec/opensearch/1.1/">${start}</opensearch:startIndex>
  <opensearch:itemsPerPage xmlns:opensearch="http://a9.com/-/spec/opensearch/1.1/">${entries.length}</opensearch:itemsPerPage>
${entries.join('\n')}
</feed>`

const withoutVersion = (id: string) => id.replace(/v\d+$/, '')

/** Answers as arXiv's API does: queries of words and categories joined by AND, lists of identifiers, and PDF files. */
export function arxivStandIn(papers: readonly Paper[], pdf: (id: string) => Buffer | null): Promise<StandIn> {
  const atom = { 'content-type': 'application/atom+xml; charset=utf-8' }
  return openStandIn(({ url }) => {
    const file = /^\/pdf\/(.+)$/.exec(url.pathname)
    if (file) {
      const bytes = pdf(withoutVersion(file[1]!))
      return bytes ? { headers: { 'content-type': 'application/pdf' }, body: bytes } : { status: 404, body: 'No paper' }
    }
    const start = Number(url.searchParams.get('start') ?? 0)
    const end = start + Number(url.searchParams.get('max_results') ?? 10)
    const ids = url.searchParams.get('id_list')?.split(',')
    const query = url.searchParams.get('search_query') ?? ''
    if (/\(\s*\)|AND\s*$/.test(query)) {
      const error = `<entry><id>http://arxiv.org/api/errors#malformed</id><title>Error</title><summary>malformed query</summary></entry>`
      return { status: 400, headers: atom, body: feed([error], 1, 0) }
    }
    const terms = query.replace(/[()]/g, '').split(' AND ')
    const matches = (paper: Paper, term: string) => {
      const [field = '', ...rest] = term.split(':')
      const word = rest.join(':').replaceAll('"', '').toLowerCase()
      if (field === 'cat') return paper.categories.some((category) => category.toLowerCase() === word)
      const place = { ti: paper.title, au: paper.authors.join(' '), abs: paper.summary }[field]
      return (place ?? `${paper.title} ${paper.summary} ${paper.authors.join(' ')}`).toLowerCase().includes(word)
    }
    const found = papers.filter((paper) =>
      ids ? ids.some((id) => withoutVersion(id) === withoutVersion(paper.id)) : terms.every((term) => matches(paper, term)),
    )
    const ordered =
      url.searchParams.get('sortBy') === 'submittedDate' ? found.toSorted((a, b) => a.published.localeCompare(b.published)) : found
    const sorted = url.searchParams.get('sortOrder') === 'descending' && ordered !== found ? ordered.reverse() : ordered
    return { headers: atom, body: feed(sorted.slice(start, end).map(entry), sorted.length, start) }
  })
}

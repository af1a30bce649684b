import { siblingModule, ToolError } from '@aworld-train/core'
import { z } from 'zod'
import { toAnswer } from '../../documents/document-tool.ts'
import { defineFormattedTool, defineTool, type ServerToolContext, type ToolServer } from '../../tool-server.ts'
import { pdfPages, readPdf } from '../pdf/read-pdf.ts'
import arxivCategories from './categories.json' with { type: 'json' }
import type { Paper, PaperFeed } from './parse-atom.ts'

const paperId = z
  .string()
  .trim()
  .regex(
    /^([aA][rR][xX][iI][vV]:\s*|https?:\/\/arxiv\.org\/(abs|pdf)\/)?(\d{4}\.\d{4,5}|[a-z-]+(\.[A-Z]{2})?\/\d{7})(v\d+)?$/,
    'Write it as "1706.03762", "1706.03762v5" or "hep-th/9901001".',
  )
  .overwrite((id) => id.replace(/^(arxiv:\s*|https?:\/\/arxiv\.org\/...\/)/i, ''))
  .describe('Identifier of the paper, such as "1706.03762".')

const paper = z.object({
  id: z.string(),
  title: z.string(),
  authors: z.array(z.string()),
  summary: z.string(),
  published: z.string(),
  updated: z.string(),
  primaryCategory: z.string(),
  categories: z.array(z.string()),
  doi: z.string(),
  journal: z.string(),
  comment: z.string(),
})
const toPaper = (found: Paper): z.output<typeof paper> => ({ ...found, authors: [...found.authors], categories: [...found.categories] })

async function askArxiv(parameters: URLSearchParams, context: ServerToolContext): Promise<PaperFeed> {
  const answer = await context.outward.service('arxiv', `/api/query?${parameters}`, {}, context.signal)
  // arXiv answers a mistake in the query with a feed and status 400.
  if (answer.status !== 200 && answer.status !== 400) throw new ToolError(`arXiv answered with status ${answer.status}; try again later.`)
  const feed = (await context.parsers.parse(siblingModule('parse-atom', import.meta.url), answer.bytes, {}, context.signal)) as PaperFeed
  const [first] = feed.papers
  if (first && /\/api\/errors/.test(first.id)) throw new ToolError(`arXiv does not take this query: ${first.summary}.`)
  return feed
}

/** A query in arXiv's own language if it uses one of its fields, else one for papers with all of the words. */
function toQuery(query: string, category: string | undefined): string {
  const usesFields = /\b(ti|au|abs|co|jr|cat|rn|id|all):/.test(query)
  const words = usesFields ? query : (query.match(/"[^"]*"|[^\s"]+/g) ?? []).map((word) => `all:${word}`).join(' AND ')
  return category === undefined ? words : `(${words}) AND cat:${category}`
}

const searchPapers = defineFormattedTool({
  name: 'search_papers',
  description: 'Finds papers of arXiv by words, or by fields: ti:, au:, abs:, cat:, joined by AND, OR and ANDNOT.',
  input: z.object({
    query: z.string().trim().min(1).max(500).describe('Such as "graph neural networks", or "au:vaswani AND ti:attention".'),
    sort_by: z.enum(['relevance', 'lastUpdatedDate', 'submittedDate']).default('relevance').describe('What the order goes by.'),
    sort_order: z.enum(['ascending', 'descending']).default('descending').describe('Which way.'),
    category: z
      .string()
      .regex(/^[a-z-]+(\.[A-Za-z-]+|\.\*)?$/)
      .optional()
      .describe('Only papers of this category, such as "cs.CL"; see get_categories.'),
    max_results: z.int().min(1).max(50).default(10).describe('How many papers.'),
    offset: z
      .int()
      .min(0)
      .max(29_999)
      .default(0)
      .describe('How many papers to skip. An answer that has more says with which offset to continue.'),
  }),
  output: z.object({ papers: z.array(paper), total: z.int(), offset: z.int(), nextOffset: z.int().nullable() }),
  async call({ query, sort_by, sort_order, category, max_results, offset }, context) {
    const parameters = new URLSearchParams({
      search_query: toQuery(query, category),
      start: String(offset),
      max_results: String(max_results),
      sortBy: sort_by,
      sortOrder: sort_order,
    })
    const { papers, total } = await askArxiv(parameters, context)
    const end = offset + papers.length
    return { papers: papers.map(toPaper), total, offset, nextOffset: papers.length > 0 && end < total ? end : null }
  },
  toText({ papers, total, offset, nextOffset }) {
    if (papers.length === 0) return offset === 0 ? 'arXiv has no such paper; try fewer or other words.' : 'There are no more papers.'
    const lines = papers.map(({ id, title, authors, published, primaryCategory }) => {
      const names = authors.length > 5 ? `${authors.slice(0, 5).join(', ')} and ${authors.length - 5} more` : authors.join(', ')
      return `${id} ${title}\n${names}; ${published.slice(0, 10)}; ${primaryCategory}`
    })
    const place = nextOffset === null ? [] : [`[${offset + 1} to ${nextOffset} of ${total}; continue with offset ${nextOffset}.]`]
    return [...lines, ...place].join('\n\n')
  },
})

const getPaperDetails = defineFormattedTool({
  name: 'get_paper_details',
  description: 'Reads what arXiv says of a paper: title, authors, dates, categories, abstract.',
  input: z.object({ paper_id: paperId }),
  output: paper,
  async call({ paper_id }, context) {
    const { papers } = await askArxiv(new URLSearchParams({ id_list: paper_id, max_results: '1' }), context)
    const [first] = papers
    if (!first?.title) throw new ToolError(`arXiv has no paper "${paper_id}"; find it with search_papers.`)
    return toPaper(first)
  },
  toText: ({ id, title, authors, published, updated, categories, doi, journal, comment, summary }) =>
    [
      `# ${title}`,
      [
        `arXiv: ${id}`,
        `Authors: ${authors.join(', ')}`,
        `Published: ${published.slice(0, 10)}`,
        `Updated: ${updated.slice(0, 10)}`,
        `Categories: ${categories.join(', ')}`,
        ...(journal ? [`Journal: ${journal}`] : []),
        ...(doi ? [`DOI: ${doi}`] : []),
        ...(comment ? [`Comment: ${comment}`] : []),
      ].join('\n'),
      summary,
    ].join('\n\n'),
})

/** The largest paper that is saved, in bytes. */
const maxPaperBytes = 50 * 2 ** 20

const savedText = ({ path, bytes }: { readonly path: string; readonly bytes: number }) =>
  `Saved ${bytes} bytes as ${path}; read it with convert_document_to_markdown.`

const downloadPaper = defineFormattedTool({
  name: 'download_paper',
  description: 'Saves the PDF of a paper of arXiv in the workspace; read it with convert_document_to_markdown.',
  input: z.object({
    paper_id: paperId,
    extract_text: z.boolean().default(false).describe('Whether the answer has the text of its first pages, too.'),
    output_file_path: z.string().min(1).max(4_096).optional().describe('Where to save it; "1706.03762.pdf" for that paper where absent.'),
  }),
  output: z.object({ path: z.string(), bytes: z.int(), text: pdfPages.nullable() }),
  async call({ paper_id, extract_text, output_file_path }, context) {
    const { outward, workspace, signal } = context
    const path = output_file_path ?? `${paper_id.replace('/', '-')}.pdf`
    const answer = await outward.service('arxiv', `/pdf/${paper_id}`, { maxBytes: maxPaperBytes, timeoutMs: 60_000 }, signal)
    if (answer.status !== 200 || !answer.bytes.subarray(0, 1024).includes('%PDF'))
      throw new ToolError(`arXiv has no PDF of "${paper_id}" (status ${answer.status}); see get_paper_details.`)
    await workspace.put(path, answer.bytes, signal)
    const saved = { path, bytes: answer.bytes.length }
    if (!extract_text) return { ...saved, text: null }
    const text = await readPdf(path, { offset: 0, limit: 50, password: null }, context).catch((error: unknown) => {
      if (!(error instanceof ToolError)) throw error
      throw new ToolError(`${savedText(saved)} Its text cannot be read: ${error.message}`)
    })
    return { ...saved, text }
  },
  toText: ({ text, ...saved }) =>
    text === null
      ? savedText(saved)
      : `${savedText(saved)}\n\n${toAnswer(
          text,
          'Pages',
          text.parts
            .map((part) => part.trim())
            .join('\n\n')
            .trim(),
        )}`,
})

/** The subjects of arXiv by archive. A category is written `archive.subject`, or as the archive alone if it has no subject. */
const archives: Readonly<Record<string, { readonly name: string; readonly subjects: Readonly<Record<string, string>> }>> = arxivCategories
const categories = Object.entries(archives).flatMap(([archive, { name, subjects }]) => {
  const rows = Object.entries(subjects).map(([subject, label]) => ({ category: `${archive}.${subject}`, name: label }))
  return rows.length > 0 ? rows : [{ category: archive, name }]
})

export const parxivServer: ToolServer = {
  name: 'parxiv-server',
  scope: 'search',
  description: 'Finds papers of arXiv and saves them in the workspace.',
  needs: [],
  tools: [
    searchPapers,
    getPaperDetails,
    downloadPaper,
    defineFormattedTool({
      name: 'get_categories',
      description: 'Lists the categories of arXiv.',
      input: z.object({}),
      output: z.object({ categories: z.array(z.object({ category: z.string(), name: z.string() })) }),
      call: async () => ({ categories }),
      toText: (answer) => answer.categories.map(({ category, name }) => `${category}: ${name}`).join('\n'),
    }),
    defineTool({
      name: 'get_arxiv_capabilities',
      description: 'Says what the tools of arXiv take.',
      input: z.object({}),
      output: z.object({ fields: z.array(z.string()), maxResults: z.int() }),
      call: async () => ({ fields: ['ti', 'au', 'abs', 'co', 'jr', 'cat', 'all'], maxResults: 50 }),
      toText: ({ fields, maxResults }) =>
        `search_papers takes words, or fields (${fields.map((field) => `${field}:`).join(' ')}), and answers with ${maxResults} papers at most; get_paper_details and download_paper take an identifier.`,
    }),
  ],
}

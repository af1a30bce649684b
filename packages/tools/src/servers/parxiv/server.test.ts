import { afterAll, describe, expect, it } from 'vitest'
import { buildPdf } from '../../testing/build-pdf.ts'
import { describeToolServer } from '../../testing/describe-tool-server.ts'
import { openWebBench, openWebContext } from '../../testing/web-context.ts'
import type { Paper } from './parse-atom.ts'
import { parxivServer } from './server.ts'
import { arxivStandIn } from './stand-in.ts'

const paper = (id: string, title: string, year: number, rest: Partial<Paper> = {}): Paper => ({
  id,
  title,
  authors: ['A. Vaswani'],
  summary: 'The dominant models are <complex> & slow.',
  published: `${year}-06-12T17:57:34Z`,
  updated: `${year + 1}-08-02T00:41:18Z`,
  primaryCategory: 'cs.CL',
  categories: ['cs.CL', 'cs.LG'],
  doi: '',
  journal: '',
  comment: '',
  ...rest,
})
const files: Readonly<Record<string, Buffer>> = {
  '1706.03762': Buffer.from('%PDF-1.5 paper'),
  '2001.00001': buildPdf([[{ text: 'Attention is needed again.', x: 50, y: 700, size: 12 }]]),
}
const authors = ['A. Vaswani', 'N. Shazeer', 'N. Parmar', 'J. Uszkoreit', 'L. Jones', 'A. Gomez']
const arxiv = await arxivStandIn(
  [
    paper('1706.03762v7', 'Attention Is All You Need', 2017, { authors, comment: '15 pages', doi: '10.1/x', journal: 'NIPS 30' }),
    paper('2001.00001v1', 'Attention again', 2020),
    paper('1901.00002v1', 'Attention once more', 2019, { categories: ['stat.ML'], primaryCategory: 'stat.ML' }),
    paper('hep-th/9901001v2', 'Branes', 1999, { categories: ['hep-th'], primaryCategory: 'hep-th' }),
  ],
  (id) => files[id] ?? null,
)
const outside = { services: [{ name: 'arxiv', baseUrl: arxiv.url }] }
const bench = await openWebBench(parxivServer, outside)
afterAll(async () => {
  await bench.close()
  await arxiv.close()
})

describeToolServer({
  server: parxivServer,
  examples: {
    search_papers: { query: 'attention' },
    get_paper_details: { paper_id: '1706.03762' },
    download_paper: { paper_id: '1706.03762' },
    get_categories: {},
    get_arxiv_capabilities: {},
  },
  open: (overrides) => openWebContext(outside, overrides),
})

describe('parxiv-server', () => {
  it('finds papers with all of the words, in pieces', async () => {
    expect(await bench.call('search_papers', { query: 'attention', max_results: 2 })).toMatchInlineSnapshot(`
      "1706.03762v7 Attention Is All You Need
      A. Vaswani, N. Shazeer, N. Parmar, J. Uszkoreit, L. Jones and 1 more; 2017-06-12; cs.CL

      2001.00001v1 Attention again
      A. Vaswani; 2020-06-12; cs.CL

      [1 to 2 of 3; continue with offset 2.]"
    `)
    expect(await bench.call('search_papers', { query: 'attention', max_results: 2, offset: 2 })).not.toContain('continue')
    expect(await bench.call('search_papers', { query: 'attention branes' })).toBe('arXiv has no such paper; try fewer or other words.')
  })

  it('takes fields, a category and an order', async () => {
    const ids = async (input: Record<string, unknown>) => (await bench.call('search_papers', input)).match(/^\S+(?= (Attention|Branes))/gm)
    expect(await ids({ query: 'au:vaswani AND ti:branes' })).toEqual(['hep-th/9901001v2'])
    expect(await ids({ query: 'attention', category: 'stat.ML' })).toEqual(['1901.00002v1'])
    expect(await ids({ query: 'attention', sort_by: 'submittedDate' })).toEqual(['2001.00001v1', '1901.00002v1', '1706.03762v7'])
    expect(await ids({ query: 'attention', sort_by: 'submittedDate', sort_order: 'ascending' })).toEqual([
      '1706.03762v7',
      '1901.00002v1',
      '2001.00001v1',
    ])
  })

  it('passes on what arXiv says of a query that it does not take', async () => {
    expect(await bench.call('search_papers', { query: 'ti:a AND ' })).toBe('error: arXiv does not take this query: malformed query.')
  })

  it('reads the details of a paper', async () => {
    expect(await bench.call('get_paper_details', { paper_id: '1706.03762' })).toMatchInlineSnapshot(`
      "# Attention Is All You Need

      arXiv: 1706.03762v7
      Authors: A. Vaswani, N. Shazeer, N. Parmar, J. Uszkoreit, L. Jones, A. Gomez
      Published: 2017-06-12
      Updated: 2018-08-02
      Categories: cs.CL, cs.LG
      Journal: NIPS 30
      DOI: 10.1/x
      Comment: 15 pages

      The dominant models are <complex> & slow."
    `)
    expect(await bench.call('get_paper_details', { paper_id: '1706.09999' })).toContain('error: arXiv has no paper "1706.09999"')
  })

  it('saves the PDF of a paper, and says when there is none', async () => {
    expect(await bench.call('download_paper', { paper_id: '1706.03762' })).toContain('Saved 14 bytes as 1706.03762.pdf')
    expect((await bench.context.workspace.get('1706.03762.pdf', 100, bench.context.signal)).toString()).toBe('%PDF-1.5 paper')
    expect(await bench.call('download_paper', { paper_id: 'hep-th/9901001' })).toContain('error: arXiv has no PDF')
  })

  it('reads the text of a paper that it saved, where it is told to', async () => {
    const text = await bench.call('download_paper', { paper_id: '2001.00001', extract_text: true })
    expect(text).toMatch(/^Saved \d+ bytes as 2001\.00001\.pdf.*\n\nAttention is needed again\.$/)
    expect(await bench.call('download_paper', { paper_id: '1706.03762', extract_text: true })).toMatch(
      /^error: Saved 14 bytes as 1706\.03762\.pdf.* Its text cannot be read: /,
    )
  })

  it.each(['arxiv:2001.00001', 'arXiv: 2001.00001v1', 'https://arxiv.org/abs/2001.00001', 'http://arxiv.org/pdf/2001.00001v1'])(
    'takes "%s" for an identifier',
    async (paper_id) => {
      expect(await bench.call('get_paper_details', { paper_id })).toContain('# Attention again')
      expect(await bench.call('download_paper', { paper_id })).toMatch(/ as 2001\.00001(v1)?\.pdf/)
    },
  )

  it('answers as JSON where it is told to', async () => {
    const json = async (name: string, input: object) => JSON.parse(await bench.call(name, { ...input, output_format: 'json' }))
    expect(await json('search_papers', { query: 'branes' })).toMatchObject({ papers: [{ id: 'hep-th/9901001v2' }], total: 1 })
    expect(await json('get_paper_details', { paper_id: '1706.03762' })).toMatchObject({ doi: '10.1/x' })
    expect(await json('download_paper', { paper_id: '1706.03762' })).toEqual({ path: '1706.03762.pdf', bytes: 14, text: null })
    expect((await json('get_categories', {})).categories).toContainEqual({ category: 'cs.CL', name: 'Computation and Language' })
  })

  it('refuses what is no identifier', async () => {
    await expect(bench.call('get_paper_details', { paper_id: '../admin' })).rejects.toThrow('1706.03762')
  })

  it('lists the categories', async () => {
    const text = await bench.call('get_categories')
    expect(text).toContain('cs.CL: Computation and Language\n')
    expect(text).toContain('\nhep-th: High Energy Physics - Theory\n')
  })
})

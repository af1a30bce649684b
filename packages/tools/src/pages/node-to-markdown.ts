import TurndownService, { type TurndownNode } from 'turndown'
import { toTable } from '../documents/markdown.ts'

export interface NodeMarkdownOptions {
  /** Base of relative addresses. */
  readonly baseUrl: string
  /** Whether the addresses of links and images are kept. */
  readonly links: boolean
  readonly images: boolean
}

const oneLine = (text: string) => text.replace(/\s+/g, ' ').trim()

/** The address that a link or an image leads to; null if it is useless to a model. */
function resolve(address: string | null, baseUrl: string): string | null {
  if (!address || address.startsWith('#') || !URL.canParse(address, baseUrl)) return null
  const { protocol, href } = new URL(address, baseUrl)
  return protocol === 'http:' || protocol === 'https:' ? href : null
}

/** Whether a table shows data. Other tables only place parts of a page. */
const isData = (table: TurndownNode) => [...table.querySelectorAll('table')].length === 0 && [...table.querySelectorAll('tr')].length > 1

/** Marks for the end of a cell and of a row while a table is put together. */
const cellEnd = '\u001f'
const rowEnd = '\u001e'

/** The text of a table: its caption and the contents of its rows. */
function tableText(content: string): string {
  const rows = content.split(rowEnd).filter((row) => row.trim() !== '')
  const captions = rows.filter((row) => !row.includes(cellEnd)).map((row) => row.trim())
  const cells = rows.filter((row) => row.includes(cellEnd)).map((row) => row.split(cellEnd).slice(0, -1).map(oneLine))
  return [...captions, toTable(cells)].join('\n\n')
}

/** Markdown of a node of linkedom: headings, lists, links, tables, code. */
export function nodeToMarkdown(node: unknown, { baseUrl, links, images }: NodeMarkdownOptions): string {
  const service = new TurndownService({ headingStyle: 'atx', codeBlockStyle: 'fenced', bulletListMarker: '-', emDelimiter: '*' })
  service.remove(['script', 'style', 'noscript', 'template', 'svg', 'iframe', 'object', 'button', 'select', 'textarea', 'head', 'title'])
  service.addRule('link', {
    filter: 'a',
    replacement(content, link) {
      const address = links ? resolve(link.getAttribute('href'), baseUrl) : null
      const text = content.trim()
      return address === null || text === '' ? content : `[${text}](${address})`
    },
  })
  service.addRule('image', {
    filter: 'img',
    replacement(_, image) {
      const address = images ? resolve(image.getAttribute('src'), baseUrl) : null
      return address === null ? '' : `![${oneLine(image.getAttribute('alt') ?? '')}](${address})`
    },
  })
  service.addRule('cell', { filter: ['th', 'td'], replacement: (content) => `${content}${cellEnd}` })
  service.addRule('row', { filter: ['tr', 'caption'], replacement: (content) => `${content}${rowEnd}` })
  service.addRule('table', {
    filter: 'table',
    replacement: (content, table) => `\n\n${isData(table) ? tableText(content) : content.replaceAll(/[\u001e\u001f]/g, '\n\n')}\n\n`,
  })
  return service
    .turndown(node)
    .replace(/[ \t]+\n/g, '\n')
    .replace(/\n{3,}/g, '\n\n')
    .trim()
}

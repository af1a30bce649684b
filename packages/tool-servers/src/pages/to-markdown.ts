import TurndownService, { type TurndownNode } from 'turndown'
import { toTable } from '../documents/markdown.ts'

export interface MarkdownOptions {
  /** What relative addresses are relative to. */
  readonly baseUrl: string
  /** Whether the addresses of links and images are kept. */
  readonly links: boolean
  readonly images: boolean
}

const oneLine = (text: string) => text.replace(/\s+/g, ' ').trim()

/** The address that a link or an image leads to; null where a model could do nothing with it. */
function resolve(address: string | null, baseUrl: string): string | null {
  if (!address || address.startsWith('#') || !URL.canParse(address, baseUrl)) return null
  const { protocol, href } = new URL(address, baseUrl)
  return protocol === 'http:' || protocol === 'https:' ? href : null
}

/** A table that shows data; others only place parts of a page. */
const isData = (table: TurndownNode) => [...table.querySelectorAll('table')].length === 0 && [...table.querySelectorAll('tr')].length > 1

const rowsOf = (table: TurndownNode) =>
  Array.from(table.querySelectorAll('tr'), (row) => Array.from(row.querySelectorAll('th, td'), (cell) => oneLine(cell.textContent)))

/** Markdown of a node of linkedom: headings, lists, links, tables, code. */
export function toMarkdown(node: unknown, { baseUrl, links, images }: MarkdownOptions): string {
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
  service.addRule('table', {
    filter: (table) => table.nodeName === 'TABLE' && isData(table),
    replacement: (_, table) => `\n\n${toTable(rowsOf(table))}\n\n`,
  })
  return service
    .turndown(node)
    .replace(/[ \t]+\n/g, '\n')
    .replace(/\n{3,}/g, '\n\n')
    .trim()
}

import { Readability } from '@mozilla/readability'
import { parseHTML } from 'linkedom'
import { decodeText } from '../documents/decode-text.ts'
import { type Page, pageOfText } from '../documents/page.ts'
import { Unreadable } from '../documents/unreadable.ts'
import { nestingOf } from './nesting.ts'
import { nodeToMarkdown } from './node-to-markdown.ts'

export interface PageOptions {
  /** Name of the page in messages. */
  readonly name: string
  readonly url: string
  readonly contentType: string
  /** Part to read: its main text, or its whole body. */
  readonly select: 'article' | 'body'
  /** Selectors of parts that are left out. */
  readonly drop?: readonly string[] | undefined
  readonly links: boolean
  readonly images: boolean
  readonly offset: number
  readonly limit: number
}

export interface ParsedPage extends Page {
  readonly title: string
}

/** A shorter article is more likely a banner that was taken for one. */
const minArticleCharacters = 200

/**
 * Pages deeper than the first limit are refused. Pages deeper than the second are read whole, because finding the main text takes
 * the third power of their depth.
 */
const maxNesting = 1_000
const maxArticleNesting = 250

/** The encoding that a page names, in its header or its first kilobyte. */
function encodingOf(bytes: Buffer, contentType: string): string | null {
  const name = /charset\s*=\s*["']?([\w-]+)/i
  const label = name.exec(contentType)?.[1] ?? name.exec(bytes.toString('latin1', 0, 1024))?.[1]
  try {
    return label === undefined ? null : new TextDecoder(label).encoding
  } catch {
    return null
  }
}

/** Reads the text of a page, one piece at a time. HTML becomes Markdown; other text stays as it is. */
export default async function parse(bytes: Buffer, options: PageOptions): Promise<ParsedPage> {
  const { name, url, contentType, select, drop = [], links, images, ...place } = options
  const { text } = await decodeText(name, bytes, encodingOf(bytes, contentType))
  const isHtml = /html/i.test(contentType) || (contentType === '' && /^\s*</.test(text))
  if (!isHtml) return { title: '', ...pageOfText(name, text, place) }

  const nesting = nestingOf(text)
  if (nesting > maxNesting)
    throw new Unreadable(`${name} has elements ${nesting} deep in each other, which takes too long to read; use another source.`)
  // Without a document element, a fragment would leave the document empty.
  const { document } = parseHTML(/<html[\s>]/i.test(text) ? text : `<html><body>${text}</body></html>`)
  for (const node of drop.length > 0 ? document.querySelectorAll(drop.join(',')) : []) node.remove()
  const title = (document.querySelector('title')?.textContent ?? '').replace(/\s+/g, ' ').trim()
  const baseUrl = new URL(document.querySelector('base')?.getAttribute('href') ?? '', url).href
  const toText = (node: unknown) => nodeToMarkdown(node, { baseUrl, links, images })
  const whole = () => toText(document.body ?? document.documentElement)
  if (select === 'body' || nesting > maxArticleNesting) return { title, ...pageOfText(name, whole(), place) }

  // Readability takes the document apart, so the whole page is written first.
  const body = whole()
  const article = new Readability<unknown>(document, { serializer: (node) => node }).parse()
  const content = article?.content ? toText(article.content) : ''
  const chosen = content.length < Math.min(minArticleCharacters, body.length) ? body : content
  return { title: title || (article?.title ?? ''), ...pageOfText(name, chosen, place) }
}

import { posix } from 'node:path'
import type { Archive } from '../../documents/archive.ts'
import { decodeEntities } from '../../documents/markdown.ts'
import { Unreadable } from '../../documents/unreadable.ts'
import { attribute, tags } from '../../documents/xml-tags.ts'
import parsePage from '../../pages/parse-page.ts'

/** Parts of an EPUB book that are read. Its chapters are XHTML, which has document types. */
export const bookParts = { names: /\.(xml|opf|x?html?)$/i, documentTypes: true } as const

/** The chapters of an EPUB book as Markdown, in the order in which it is read, below its title. */
export async function bookToMarkdown(file: string, { parts }: Archive, { tables }: { readonly tables: boolean }): Promise<string> {
  const text = (name: string) => parts.get(name)?.toString() ?? ''
  const [root = ''] = tags(text('META-INF/container.xml'), 'rootfile')
  const packageFile = attribute(root, 'full-path')
  const description = text(packageFile)
  if (description === '') throw new Unreadable(`${file} is damaged: its table of contents is missing. Try another copy.`)
  const place = (href: string) => posix.join(posix.dirname(packageFile), decodePath(href))
  const files = new Map(tags(description, 'item').map((tag) => [attribute(tag, 'id'), place(attribute(tag, 'href'))]))
  const chapters = tags(description, 'itemref').flatMap((tag) => files.get(attribute(tag, 'idref')) ?? [])
  const locked = new Set(tags(text('META-INF/encryption.xml'), 'CipherReference').map((tag) => decodePath(attribute(tag, 'URI'))))
  if (chapters.some((name) => locked.has(name)))
    throw new Unreadable(`${file} is protected against copying (DRM), which only its own reader opens. Try another copy.`)
  const contents: string[] = []
  for (const name of chapters) contents.push(await chapterToMarkdown(file, text(name), tables))
  return [titleOf(description), ...contents].filter((content) => content !== '').join('\n\n')
}

function decodePath(path: string): string {
  try {
    return decodeURIComponent(path)
  } catch {
    return path
  }
}

/** An element of XHTML that ends in its own tag, which HTML leaves open. */
const closedElement = /<(?!(?:area|base|br|col|embed|hr|img|input|link|meta|source|track|wbr)\b)([a-z][\w:-]*)((?:\s[^<>]*)?)\/>/gi

async function chapterToMarkdown(file: string, xhtml: string, tables: boolean): Promise<string> {
  const bytes = Buffer.from(xhtml.replace(closedElement, '<$1$2></$1>'))
  const { content } = await parsePage(bytes, {
    name: file,
    // Addresses in the book, which lead nowhere else, are relative to this.
    url: 'epub:/',
    contentType: 'text/html; charset=utf-8',
    select: 'body',
    drop: tables ? [] : ['table'],
    links: true,
    images: false,
    offset: 0,
    limit: Number.POSITIVE_INFINITY,
  })
  return content
}

function titleOf(description: string): string {
  const element = (name: string) => decodeEntities(new RegExp(`<dc:${name}\\b[^>]*>([^<]*)<`).exec(description)?.[1] ?? '').trim()
  const [title, creator] = [element('title'), element('creator')]
  return [title && `# ${title}`, creator].filter((line) => line !== '').join('\n\n')
}

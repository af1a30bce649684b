import mammoth from 'mammoth'
import { type Archive, openArchive, toStoredArchive } from '../../documents/archive.ts'
import { withoutPassword } from '../../documents/decrypt-office.ts'
import { expectKind } from '../../documents/file-kind.ts'
import { decodeEntities, htmlToMarkdown } from '../../documents/markdown.ts'
import { type Page, pageOfText } from '../../documents/page.ts'
import { readWith } from '../../documents/unreadable.ts'

export interface DocxOptions {
  /** Name of the file in messages. */
  readonly file: string
  readonly password: string | null
  readonly plain: boolean
  readonly images: boolean
  readonly tables: boolean
  readonly headersFooters: boolean
  readonly outline: boolean
  readonly offset: number
  readonly limit: number
}

export interface DocxDocument extends Page {
  /** Headings, with the offset at which each begins; empty for plain text. */
  readonly outline: readonly { readonly level: number; readonly heading: string; readonly offset: number }[]
  readonly headers: readonly string[]
  readonly footers: readonly string[]
  readonly images: readonly { readonly name: string; readonly bytes: number }[]
  readonly notices: readonly string[]
}

/** Most headings, headers, footers and images that an answer names. */
const maxNames = 200

/** One page of a Word document as Markdown. */
export default async function parse(source: Buffer, options: DocxOptions): Promise<DocxDocument> {
  const bytes = await withoutPassword(options.file, source, options.password)
  if (expectKind(options.file, bytes, ['docx', 'epub']) === 'epub') return await parseBook(bytes, options)
  const archive = openArchive(options.file, bytes)
  const text = await readWith(options.file, 'DOCX', () => toMarkdown(archive, options))
  return {
    ...pageOfText(options.file, text, options),
    outline: options.outline ? outlineOf(text) : [],
    headers: options.headersFooters ? textsOf(archive, '<w:hdr') : [],
    footers: options.headersFooters ? textsOf(archive, '<w:ftr') : [],
    images: options.images ? archive.media.filter(({ name }) => name.startsWith('word/media/')).slice(0, maxNames) : [],
    notices: hasEquations(archive) ? ['Equations of the document are not shown.'] : [],
  }
}

async function parseBook(bytes: Buffer, options: DocxOptions): Promise<DocxDocument> {
  // Readers of HTML are loaded here because they take as long as those of Word, and most documents are no books.
  const { bookParts, bookToMarkdown } = await import('./book-to-markdown.ts')
  const archive = openArchive(options.file, bytes, bookParts)
  const text = await readWith(options.file, 'EPUB', () => bookToMarkdown(options.file, archive, options))
  return {
    ...pageOfText(options.file, text, options),
    outline: options.outline ? outlineOf(text) : [],
    headers: [],
    footers: [],
    images: options.images ? archive.media.filter(({ name }) => /\.(png|jpe?g|gif|webp|svg)$/i.test(name)).slice(0, maxNames) : [],
    notices: [],
  }
}

async function toMarkdown(archive: Archive, { plain, images, tables }: DocxOptions): Promise<string> {
  const { value } = await mammoth.convertToHtml(
    { buffer: toStoredArchive(archive.parts) },
    {
      styleMap: ["p[style-name='Title'] => h1:fresh", "p[style-name='Subtitle'] => h2:fresh", 'comment-reference => sup'],
      includeEmbeddedStyleMap: false,
      convertImage: mammoth.images.imgElement(async () => ({ src: 'image' })),
    },
  )
  return htmlToMarkdown(images ? value : value.replace(/<img [^>]*>/g, ''), { plain, withoutTables: !tables })
}

function outlineOf(markdown: string): DocxDocument['outline'] {
  return [...markdown.matchAll(/^(#{1,6}) (.+)$/gm)]
    .slice(0, maxNames)
    .map(({ index, 1: marks, 2: heading }) => ({ level: marks!.length, heading: heading!.slice(0, 200), offset: index }))
}

/** Texts of the parts that contain this element. Mammoth reads neither headers nor footers. */
function textsOf({ parts }: Archive, element: string): string[] {
  const texts = [...parts.values()].map((part) => part.toString()).filter((xml) => xml.includes(element))
  return [...new Set(texts.map(textOfXml))].filter((text) => text !== '').slice(0, maxNames)
}

function textOfXml(xml: string): string {
  const pieces = Array.from(xml.matchAll(/<w:t(?: [^>]*)?>([^<]*)<|<w:(tab|br)\b|<\/w:(p)>/g), ([, text, space, end]) => {
    if (text !== undefined) return decodeEntities(text)
    return end === undefined ? (space === 'tab' ? '\t' : '\n') : '\n'
  })
  return pieces.join('').trim().slice(0, 2_000)
}

function hasEquations({ parts }: Archive): boolean {
  return parts.get('word/document.xml')?.includes('<m:oMath') ?? false
}

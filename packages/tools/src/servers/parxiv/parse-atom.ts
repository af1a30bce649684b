import { DOMParser } from 'linkedom'

export interface Paper {
  readonly id: string
  readonly title: string
  readonly authors: readonly string[]
  readonly summary: string
  readonly published: string
  readonly updated: string
  readonly primaryCategory: string
  readonly categories: readonly string[]
  readonly doi: string
  readonly journal: string
  readonly comment: string
}

export interface PaperFeed {
  readonly total: number
  readonly papers: readonly Paper[]
}

interface XmlNode {
  readonly textContent: string
  getAttribute(name: string): string | null
  getElementsByTagName(name: string): ArrayLike<XmlNode>
}

const all = (node: XmlNode, name: string) => Array.from(node.getElementsByTagName(name))
const text = (node: XmlNode, name: string) => (all(node, name)[0]?.textContent ?? '').replace(/\s+/g, ' ').trim()
const attribute = (node: XmlNode, name: string, key: string) => all(node, name)[0]?.getAttribute(key) ?? ''

/** Reads the papers of an Atom feed of arXiv. */
export default function parse(bytes: Buffer): PaperFeed {
  const feed = new DOMParser().parseFromString(bytes.toString('utf8'), 'text/xml') as unknown as XmlNode
  if (all(feed, 'feed').length === 0) throw new Error('The answer of arXiv is no Atom feed.')
  const papers = all(feed, 'entry').map((entry) => ({
    id: text(entry, 'id').replace(/^https?:\/\/arxiv\.org\/abs\//, ''),
    title: text(entry, 'title'),
    authors: all(entry, 'author').map((author) => text(author, 'name')),
    summary: text(entry, 'summary'),
    published: text(entry, 'published'),
    updated: text(entry, 'updated'),
    primaryCategory: attribute(entry, 'arxiv:primary_category', 'term'),
    categories: all(entry, 'category').map((category) => category.getAttribute('term') ?? ''),
    doi: text(entry, 'arxiv:doi'),
    journal: text(entry, 'arxiv:journal_ref'),
    comment: text(entry, 'arxiv:comment'),
  }))
  return { total: Number(text(feed, 'opensearch:totalResults')) || papers.length, papers }
}

/** A table as Markdown, with its first row as the heading. */
export function toTable(rows: readonly (readonly string[])[]): string {
  const columns = rows.reduce((most, row) => Math.max(most, row.length), 0)
  if (columns === 0) return ''
  const line = (row: readonly string[]) => `| ${Array.from({ length: columns }, (_, index) => toCell(row[index] ?? '')).join(' | ')} |`
  const [heading, ...others] = rows
  return [line(heading!), `|${' --- |'.repeat(columns)}`, ...others.map(line)].join('\n')
}

/** A table as lines of cells with tabs between them. */
export function toTabbed(rows: readonly (readonly string[])[]): string {
  return rows.map((row) => row.map((cell) => cell.replace(/[\t\r\n]+/g, ' ')).join('\t')).join('\n')
}

/** A block of code whose fence is longer than any inside. */
export function fenced(text: string, language = ''): string {
  const fence = '`'.repeat(Math.max(3, ...(text.match(/`+/g) ?? []).map((run) => run.length + 1)))
  return `${fence}${language}\n${text.replace(/\n$/, '')}\n${fence}`
}

function toCell(text: string): string {
  return text
    .trim()
    .replace(/\s*\n\s*/g, ' ')
    .replaceAll('|', '\\|')
}

interface Frame {
  readonly tag: string
  readonly href: string | null
  /** Cells of a table's rows. */
  readonly rows: string[][]
  /** Columns that a cell takes. */
  readonly span: number
  /** Its content so far. It is joined once, because long documents have many pieces. */
  readonly pieces: string[]
}

/** Most columns that a cell spans, whatever the document claims. */
const maxSpan = 100

export interface MarkdownOptions {
  /** Leaves out the marks of headings, emphasis and links. */
  readonly plain?: boolean | undefined
  readonly withoutTables?: boolean | undefined
}

/** Markdown of HTML from a converter of Office files: headings, paragraphs, lists, tables, links, emphasis. Other tags are left out. */
export function htmlToMarkdown(html: string, { plain = false, withoutTables = false }: MarkdownOptions = {}): string {
  const frames: Frame[] = [frame('', '')]
  const lists: { ordered: boolean; items: number }[] = []
  const top = () => frames.at(-1)!
  const write = (text: string) => {
    if (text !== '') top().pieces.push(text)
  }
  for (const [, closing, name, attributes, text] of html.matchAll(/<(\/?)([a-z][a-z0-9]*)([^<>]*)>|([^<]+|<)/gi)) {
    if (text !== undefined) {
      const clean = decodeEntities(text).replace(/[ \t\r\n]+/g, ' ')
      write((top().pieces.at(-1)?.endsWith('\n') ?? true) ? clean.trimStart() : clean)
      continue
    }
    const tag = name!.toLowerCase()
    if (closing === '/') close(tag)
    else open(tag, attributes!)
  }
  while (frames.length > 1) close(top().tag)
  return top()
    .pieces.join('')
    .replace(/[ \t]+\n/g, '\n')
    .replace(/\n{3,}/g, '\n\n')
    .trim()

  function open(tag: string, attributes: string): void {
    if (tag === 'br') write('\n')
    else if (tag === 'p') write('\n\n')
    else if (tag === 'ul' || tag === 'ol') lists.push({ ordered: tag === 'ol', items: 0 })
    else if (tag === 'img') write(`![${attribute(attributes, 'alt')}](${attribute(attributes, 'src')})`)
    else if (tag === 'tr') tableOf()?.rows.push([])
    else if (framed.has(tag)) frames.push(frame(tag, attributes))
  }

  function close(tag: string): void {
    if (tag === 'p') write('\n\n')
    else if (tag === 'ul' || tag === 'ol') {
      lists.pop()
      write(lists.length === 0 ? '\n\n' : '')
    } else if (frames.length > 1 && top().tag === tag) {
      write(wrap(frames.pop()!))
    }
  }

  function wrap({ tag, pieces, href, rows, span }: Frame): string {
    const text = pieces.join('')
    const inner = text.trim()
    if (tag === 'table') return withoutTables ? '' : `\n\n${table(rows)}\n\n`
    if (tag === 'td' || tag === 'th') {
      const row = tableOf()?.rows.at(-1)
      row?.push(inner, ...Array<string>(span - 1).fill(''))
      return row === undefined ? ` ${inner} ` : ''
    }
    if (inner === '') return text
    if (/^h[1-6]$/.test(tag)) return `\n\n${plain ? '' : `${'#'.repeat(Number(tag[1]))} `}${inner.replace(/\s+/g, ' ')}\n\n`
    if (tag === 'li') return item(inner)
    if (plain) return text
    if (tag === 'a') return href === null ? text : `[${inner}](${href})`
    const mark = tag === 'em' || tag === 'i' ? '*' : '**'
    return text.replace(inner, () => `${mark}${inner}${mark}`)
  }

  /** Writes a table. Markdown has no table inside a cell, so a nested table becomes a list. */
  function table(rows: readonly string[][]): string {
    if (tableOf() !== undefined) return rows.map((row) => row.join(', ')).join('; ')
    return plain ? toTabbed(rows) : toTable(rows)
  }

  function item(inner: string): string {
    const list = lists.at(-1)
    if (list !== undefined) list.items += 1
    const mark = list?.ordered ? `${list.items}. ` : '- '
    return `\n${mark}${inner.replace(/\n+/g, '\n').replaceAll('\n', '\n  ')}`
  }

  function tableOf(): Frame | undefined {
    return frames.findLast((one) => one.tag === 'table')
  }
}

const framed = new Set(['h1', 'h2', 'h3', 'h4', 'h5', 'h6', 'li', 'a', 'strong', 'b', 'em', 'i', 'table', 'td', 'th'])

function frame(tag: string, attributes: string): Frame {
  const href = tag === 'a' ? attribute(attributes, 'href') : ''
  const span = Math.min(maxSpan, Math.max(1, Number.parseInt(attribute(attributes, 'colspan'), 10) || 1))
  return { tag, href: /^(https?|mailto):/i.test(href) ? href : null, rows: [], span, pieces: [] }
}

function attribute(attributes: string, name: string): string {
  const match = new RegExp(`\\b${name}\\s*=\\s*("[^"]*"|'[^']*'|[^\\s"'>]+)`, 'i').exec(attributes)
  return decodeEntities(match?.[1]?.replace(/^["']|["']$/g, '') ?? '')
}

const entities: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'", nbsp: ' ' }

/** Replaces the entities that XML and converters write, named and numeric. */
export function decodeEntities(text: string): string {
  return text.replace(/&(#x[0-9a-f]{1,6}|#[0-9]{1,7}|[a-z]{2,5});/gi, (whole, name: string) => {
    if (!name.startsWith('#')) return entities[name.toLowerCase()] ?? whole
    const code = /^#x/i.test(name) ? Number.parseInt(name.slice(2), 16) : Number(name.slice(1))
    return code <= 0x10ffff ? String.fromCodePoint(code) : whole
  })
}

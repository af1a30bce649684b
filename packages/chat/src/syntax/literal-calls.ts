import { scanBrackets } from './bracket-scan.ts'
import { objectOf } from './call-object.ts'
import { LiteralReader, NoLiteral, type Notation } from './literals.ts'
import type { ParsedCall, ToolCallSyntax } from './syntax.ts'
import { llama4Markers } from './tagged-json.ts'

interface PythonicMarkers {
  readonly name: string
  readonly open: string | null
  readonly close: string | null
}

const pythonName = /[A-Za-z_][\w.-]*/y
const keyword = /[A-Za-z_]\w*/y

/** A list of calls whose keyword arguments are Python literals: LFM2 between markers, Llama 4 and some 3.2 as the whole message. */
export function pythonicCalls({ name: row, open, close }: PythonicMarkers): ToolCallSyntax {
  return {
    name: row,
    opens: open === null ? [] : [open],
    ...(open === null && { bare: '[', around: llama4Markers }),
    close,
    scan: () =>
      scanBrackets({
        quotes: ['"', "'", '"""', "'''"],
        escapes: true,
        head: /^\s*\[\s*[A-Za-z_][\w.-]*\s*\(/,
        partialHead: /^\s*(?:\[\s*(?:[A-Za-z_][\w.-]*\s*)?)?$/,
        due: [']', ')'],
      }),
    parse: (body) => readOrNull(() => readPythonic(new LiteralReader(body, python))),
    opening: (name) => `${open ?? ''}[${name === null ? '' : `${name}(`}`,
  }
}

function readPythonic(reader: LiteralReader): readonly ParsedCall[] {
  const calls: ParsedCall[] = []
  reader.need('[')
  do {
    reader.skip()
    const name = reader.match(pythonName)
    reader.need('(')
    if (name === '') throw new NoLiteral()
    calls.push({ name, arguments: keywordArguments(reader) })
  } while (reader.take(','))
  reader.need(']')
  if (!reader.ended) throw new NoLiteral()
  return calls
}

function keywordArguments(reader: LiteralReader): string {
  const members = new Map<string, string>()
  while (!reader.take(')')) {
    reader.skip()
    const key = reader.match(keyword)
    reader.need('=')
    if (key === '' || members.has(key)) throw new NoLiteral()
    members.set(key, reader.value())
    if (!reader.take(',')) {
      reader.need(')')
      break
    }
  }
  return objectOf(members)
}

const escapes: Readonly<Record<string, string>> = {
  '\\': '\\',
  "'": "'",
  '"': '"',
  n: '\n',
  r: '\r',
  t: '\t',
  b: '\b',
  f: '\f',
  v: '\v',
  a: '\u0007',
  0: '\0',
  '\n': '',
}

/** Python's literals, and `true`, `false` and `null`, which templates print with `tojson`. */
const python: Notation = {
  words: { True: 'true', False: 'false', None: 'null', true: 'true', false: 'false', null: 'null' },
  bareKeys: false,
  string(text, start) {
    const quote = ['"""', "'''", '"', "'"].find((candidate) => text.startsWith(candidate, start))
    if (quote === undefined) return null
    let value = ''
    let at = start + quote.length
    while (!text.startsWith(quote, at)) {
      const character = text[at]
      if (character === undefined || (character === '\n' && quote.length === 1)) throw new NoLiteral()
      const { part, length } = character === '\\' ? escaped(text, at + 1) : { part: character, length: 1 }
      value += part
      at += length
    }
    return { value, end: at + quote.length }
  },
}

function escaped(text: string, at: number): { part: string; length: number } {
  const code = text[at] ?? ''
  const digits = { x: 2, u: 4, U: 8 }[code]
  if (digits === undefined) {
    return Object.hasOwn(escapes, code) ? { part: escapes[code]!, length: 2 } : { part: `\\${code}`, length: 1 + code.length }
  }
  const hex = text.slice(at + 1, at + 1 + digits)
  const point = hex.length === digits && /^[0-9a-fA-F]+$/.test(hex) ? Number.parseInt(hex, 16) : Number.NaN
  if (!(point <= 0x10ffff)) throw new NoLiteral()
  return { part: String.fromCodePoint(point), length: 2 + digits }
}

const gemmaQuote = '<|"|>'

/** Gemma 4's notation: strings between quote tokens, keys bare or between them, and Python's `None`, which its template prints. */
const gemma: Notation = {
  words: { true: 'true', false: 'false', null: 'null', None: 'null' },
  bareKeys: true,
  string(text, start) {
    if (!text.startsWith(gemmaQuote, start)) return null
    const end = text.indexOf(gemmaQuote, start + gemmaQuote.length)
    if (end < 0) throw new NoLiteral()
    return { value: text.slice(start + gemmaQuote.length, end), end: end + gemmaQuote.length }
  },
}

/** `call:NAME{key:value}` with a quote token round strings: Gemma 4. */
export const gemmaCalls: ToolCallSyntax = {
  name: 'gemma-call',
  opens: ['<|tool_call>'],
  close: '<tool_call|>',
  scan: () =>
    scanBrackets({
      quotes: [gemmaQuote],
      escapes: false,
      head: /^\s*call:[^\s{}<>:,]+\{/,
      partialHead: /^\s*(?:c|ca|cal|call|call:[^\s{}<>:,]*)?$/,
      due: ['}'],
    }),
  parse: (body) =>
    readOrNull(() => {
      const reader = new LiteralReader(body, gemma)
      reader.need('call:')
      const name = reader.match(/[^\s{}<>:,]+/y)
      reader.need('{')
      const members = reader.members()
      if (name === '' || !reader.ended) throw new NoLiteral()
      return [{ name, arguments: members }]
    }),
  opening: (name) => `<|tool_call>call:${name === null ? '' : `${name}{`}`,
}

function readOrNull(read: () => readonly ParsedCall[]): readonly ParsedCall[] | null {
  try {
    return read()
  } catch (error) {
    if (error instanceof NoLiteral) return null
    throw error
  }
}

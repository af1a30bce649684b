import { afterEach, expect, test } from 'vitest'
import { createCallReader } from '../call-reader.ts'
import { CompletionOutput } from '../completion-output.ts'
import { createReasoningReader } from '../reasoning-reader.ts'
import type { BodyScan, ToolCallSyntax } from './syntax.ts'
import { toolCallSyntaxes } from './table.ts'

const size = 20_000
const { exec } = RegExp.prototype
const { indexOf, includes, trimStart, trimEnd } = String.prototype

afterEach(() => {
  RegExp.prototype.exec = exec
  Object.assign(String.prototype, { indexOf, includes, trimStart, trimEnd })
})

/** Characters that are looked at while `text` is read in pieces: by searches, by the scan of bodies and by parsing them. */
function work(row: ToolCallSyntax, text: string, piece: number, reasoning = false): number {
  let count = 0
  const counted: ToolCallSyntax = {
    ...row,
    scan() {
      const scan = row.scan()
      return {
        get state() {
          return scan.state
        },
        read(part) {
          count += part.length
          scan.read(part)
        },
      } satisfies BodyScan
    },
    parse(body, tools) {
      count += body.length
      return row.parse(body, tools)
    },
  }
  RegExp.prototype.exec = function (input: string) {
    const from = this.global || this.sticky ? this.lastIndex : 0
    const found = exec.call(this, input)
    count += (found ? found.index + found[0].length : this.sticky ? from + 1 : input.length) - from
    return found
  }
  String.prototype.indexOf = function (this: string, ...args) {
    const at = indexOf.apply(this, args)
    count += (at < 0 ? this.length : at) - (args[1] ?? 0)
    return at
  }
  String.prototype.includes = function (this: string, ...args) {
    count += this.length
    return includes.apply(this, args)
  }
  String.prototype.trimStart = function (this: string) {
    const trimmed = trimStart.call(this)
    count += this.length - trimmed.length
    return trimmed
  }
  String.prototype.trimEnd = function (this: string) {
    const trimmed = trimEnd.call(this)
    count += this.length - trimmed.length
    return trimmed
  }
  const output = new CompletionOutput({ parallelCalls: true, mintToolCallId: String, idForm: 'any' })
  const tags = reasoning ? { name: 'think', open: '<think>', close: '</think>' } : null
  const isSpecial = () => false
  const next = createCallReader({ output, syntax: counted, tools: [], isSpecial })
  const reader = tags ? createReasoningReader({ output, tags, isOpen: false, callMarkers: row.opens, isSpecial, next }) : next
  for (let at = 0; at < text.length; at += piece) reader.read({ text: text.slice(at, at + piece), special: false, stop: false })
  reader.finish(true)
  return count
}

const rows = toolCallSyntaxes.filter(({ channels }) => !channels)
const cases = rows.flatMap((row) => {
  const open = row.opens[0] ?? ''
  const close = row.close ?? ''
  const bodies: readonly string[] = [
    '<',
    ' ',
    '\n',
    open,
    close,
    open + close,
    `${open}{"`,
    `${open}"${close}`,
    `${open}\\"${close}`,
    `${open}{"a": "${close}`,
    `${open}{"a": "\\`,
    `${open}f\n<arg_key>a</arg_key><arg_value>${close}`,
    `${open}f\n<arg_key>a</arg_key><arg_value>${close}x`,
    `${open}<function=f><parameter=a>${close}`,
    `${open}<function=f><parameter=a>${close}${open}x`,
    `${open}<function=f><parameter=a></parameter>x`,
    `${open}[f(a='${close}`,
    `${open}[f(a="""${close}`,
    `${open}call:f{a:<|"|>${close}`,
    `${open}{"name": "f", "arguments": {}}${close}`,
    ';',
    ']',
  ]
  return bodies.filter((body) => body !== '').map((body) => [row, body] as const)
})

test.each(cases.map(([row, body]) => [row.name, body, row] as const))('%s: the work grows with the text: %j', (_, body, row) => {
  const unit = [...Array(Math.ceil(size / body.length))].fill(body).join('').slice(0, size)
  const inArgument = `${row.opens[0] ?? ''}${row.name.endsWith('parameters') ? '<function=f><parameter=a>' : '{"name": "f", "arguments": {"a": "'}${unit}`
  for (const [text, piece] of [
    [unit, size],
    [unit, 50],
    [inArgument, 4096],
  ] as const) {
    expect(work(row, text, piece)).toBeLessThan(60 * size)
  }
})

test.each(['<', '<tool_call>', '<tool_call>{"a": "</tool_call>', '<tool_call>"</tool_call>'])('a million characters of %j', (body) => {
  const text = body.repeat(Math.ceil(1_000_000 / body.length))
  for (const piece of [text.length, 5000]) expect(work(rows[0]!, text, piece)).toBeLessThan(10 * text.length)
})

test('white space in front of reasoning is looked at once', () => {
  for (const piece of [1, 1000]) expect(work(rows[0]!, `${' \n'.repeat(size / 2)}<think>`, piece, true)).toBeLessThan(20 * size)
})

import type { ToolDefinition } from '@aworld-train/core'
import { objectOf } from './call-object.ts'
import type { ParsedCall, ToolCallSyntax } from './syntax.ts'
import { tagScanner } from './tag-scan.ts'
import { typedValues } from './typed-value.ts'

/** Python's spelling of the words, which templates print with `| string`. */
const pythonWords = { True: 'true', False: 'false', None: 'null' }

interface XmlMarkers {
  readonly name: string
  readonly open: string
  readonly close: string
}

/** `<function=NAME>` with `<parameter=KEY>` blocks, values raw between newlines: Qwen3-Coder, Qwen 3.5, Nemotron 3, Seed-OSS. */
export function xmlParameters({ name: row, open, close }: XmlMarkers): ToolCallSyntax {
  const enter = '<parameter='
  const end = '</function>'
  return {
    name: row,
    opens: [open],
    close,
    tell: '<function=',
    scan: tagScanner({ head: '<function=', enter, leave: '</parameter>', follow: [enter, end], another: [open, '<function='], end }),
    parse: parseXml,
    opening: (name) => `${open}\n<function=${name === null ? '' : `${name}>`}`,
  }
}

const functionText = /^\s*<function=([^<>\n]+)>([\s\S]*)<\/function>\s*$/
const parameterText = /\s*<parameter=([^<>\n]+)>([\s\S]*?)<\/parameter>(?=\s*(?:<parameter=|$))/y

function parseXml(body: string, tools: readonly ToolDefinition[]): readonly ParsedCall[] | null {
  const [, name, inner] = functionText.exec(body) ?? []
  if (name === undefined || inner === undefined) return null
  return parsePairs(name.trim(), inner, parameterText, typedValues(name.trim(), tools, pythonWords), betweenLines)
}

/** A value without the one newline before and after it. */
const betweenLines = (value: string): string => value.replace(/^\n/, '').replace(/\n$/, '')

/** The name, and pairs of `<arg_key>` and `<arg_value>`, with or without newlines between: GLM-4.5 and later. */
export const keyValueTags: ToolCallSyntax = {
  name: 'key-value-tags',
  opens: ['<tool_call>'],
  close: '</tool_call>',
  tell: '<arg_key>',
  scan: tagScanner({
    head: '',
    enter: '<arg_value>',
    leave: '</arg_value>',
    follow: ['<arg_key>'],
    another: ['</tool_call>', '<tool_call>'],
    end: null,
  }),
  parse(body, tools) {
    const [, name, inner] = /^\s*([^\s<>{}"]+)\s*((?:<arg_key>[\s\S]*)?)$/.exec(body) ?? []
    if (name === undefined || inner === undefined) return null
    return parsePairs(name, inner, pairText, typedValues(name, tools), (value) => value)
  },
  opening: (name) => `<tool_call>${name === null ? '' : `${name}\n`}`,
}

const pairText = /\s*<arg_key>([^<>]+)<\/arg_key>\s*<arg_value>([\s\S]*?)<\/arg_value>(?=\s*(?:<arg_key>|$))/y

function parsePairs(
  name: string,
  text: string,
  pair: RegExp,
  typed: (key: string, value: string) => string,
  trim: (value: string) => string,
): readonly ParsedCall[] | null {
  const members = new Map<string, string>()
  let at = 0
  while (text.slice(at).trim() !== '') {
    pair.lastIndex = at
    const [whole, key, value] = pair.exec(text) ?? []
    if (whole === undefined || key === undefined || value === undefined || members.has(key.trim())) return null
    members.set(key.trim(), typed(key.trim(), trim(value)))
    at += whole.length
  }
  return [{ name, arguments: objectOf(members) }]
}

import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { FinishReason, ToolDefinition } from '@aworld-train/core'
import { createCompletionParser } from '../completion-parser.ts'
import { reasoningTags } from '../reasoning-tags.ts'
import { createTokenizer, type TextTokenizer } from '../tokenizer.ts'
import type { CompletionDelta, ParsedCompletion, TemplateProbe } from '../types.ts'
import { writeModel } from '../write-model.test-support.ts'
import { harmonyMarkers } from './harmony.ts'
import type { ToolCallSyntax } from './syntax.ts'
import { toolCallSyntaxes } from './table.ts'

export type JsonObject = { readonly [key: string]: unknown }

export interface WrittenCall {
  readonly name: string
  readonly arguments: JsonObject
}

/** Signs around markers in written text, which distinguish them from text that looks the same. */
const begin = '\uE000'
const end = '\uE001'
const mark = (strings: TemplateStringsArray): string => `${begin}${strings[0]}${end}`

const python = (value: unknown): string => {
  if (value === null) return 'None'
  if (typeof value === 'boolean') return value ? 'True' : 'False'
  if (typeof value === 'string') return JSON.stringify(value)
  if (Array.isArray(value)) return `[${value.map(python).join(', ')}]`
  if (typeof value !== 'object') return String(value)
  return `{${Object.entries(value)
    .map(([key, member]) => `${JSON.stringify(key)}: ${python(member)}`)
    .join(', ')}}`
}

const gemma = (value: unknown): string => {
  if (typeof value === 'string') return mark`<|"|>` + value + mark`<|"|>`
  if (Array.isArray(value)) return `[${value.map(gemma).join(',')}]`
  if (value === null || typeof value !== 'object') return value === null ? 'None' : String(value)
  return `{${Object.entries(value)
    .map(([key, member]) => `${key}:${gemma(member)}`)
    .join(',')}}`
}

const callObject = (call: WrittenCall, keys = ['name', 'arguments']): string =>
  `{"${keys[0]}": ${JSON.stringify(call.name)}, "${keys[1]}": ${JSON.stringify(call.arguments)}}`
const list = (calls: readonly WrittenCall[], keys?: string[]): string => `[${calls.map((call) => callObject(call, keys)).join(', ')}]`
const pythonic = (calls: readonly WrittenCall[]): string =>
  `[${calls
    .map(
      ({ name, arguments: args }) =>
        `${name}(${Object.entries(args)
          .map(([key, value]) => `${key}=${python(value)}`)
          .join(', ')})`,
    )
    .join(', ')}]`

const xml = ({ name, arguments: args }: WrittenCall): string => {
  const spelled = (value: unknown) =>
    typeof value === 'string' ? value : typeof value === 'object' && value !== null ? JSON.stringify(value) : python(value)
  const parameters = Object.entries(args).map(([key, value]) => `<parameter=${key}>\n${spelled(value)}\n</parameter>\n`)
  return `\n<function=${name}>\n${parameters.join('')}</function>\n`
}

type Writer = (calls: readonly WrittenCall[]) => string

/** Writers of calls for each row, as its template prints them. */
export const writers: Readonly<Record<string, Writer>> = {
  harmony: (calls) =>
    calls
      .map(
        ({ name, arguments: args }, index) =>
          `${index === 0 ? '' : `${mark`<|start|>`}assistant`}${mark`<|channel|>`}commentary to=functions.${name} ${mark`<|constrain|>`}json${mark`<|message|>`}${JSON.stringify(args)}${mark`<|call|>`}`,
      )
      .join(''),
  'tagged-json': (calls) => calls.map((call) => `${mark`<tool_call>`}\n${callObject(call)}\n${mark`</tool_call>`}`).join('\n'),
  'xml-parameters': (calls) => calls.map((call) => mark`<tool_call>` + xml(call) + mark`</tool_call>`).join('\n'),
  'seed-parameters': (calls) => calls.map((call) => mark`<seed:tool_call>` + xml(call) + mark`</seed:tool_call>`).join('\n'),
  'key-value-tags': (calls) =>
    calls
      .map(
        ({ name, arguments: args }) =>
          `${mark`<tool_call>`}${name}\n${Object.entries(args)
            .map(
              ([key, value]) =>
                `<arg_key>${key}</arg_key>\n<arg_value>${typeof value === 'string' ? value : JSON.stringify(value)}</arg_value>\n`,
            )
            .join('')}${mark`</tool_call>`}`,
      )
      .join('\n'),
  'mistral-list': (calls) =>
    `${mark`[TOOL_CALLS]`}[${calls.map((call, index) => `${callObject(call).slice(0, -1)}, "id": "abcdefg0${index}"}`).join(', ')}]`,
  'mistral-args': (calls) =>
    calls.map(({ name, arguments: args }) => mark`[TOOL_CALLS]` + name + mark`[ARGS]` + JSON.stringify(args)).join(''),
  'deepseek-fenced': (calls) =>
    `${mark`<｜tool▁calls▁begin｜>`}${calls
      .map(
        ({ name, arguments: args }) =>
          `${mark`<｜tool▁call▁begin｜>`}function${mark`<｜tool▁sep｜>`}${name}\n\`\`\`json\n${JSON.stringify(args)}\n\`\`\`${mark`<｜tool▁call▁end｜>`}`,
      )
      .join('\n')}${mark`<｜tool▁calls▁end｜>`}`,
  'deepseek-plain': (calls) =>
    `${mark`<｜tool▁calls▁begin｜>`}${calls
      .map(
        ({ name, arguments: args }) =>
          mark`<｜tool▁call▁begin｜>` + name + mark`<｜tool▁sep｜>` + JSON.stringify(args) + mark`<｜tool▁call▁end｜>`,
      )
      .join('')}${mark`<｜tool▁calls▁end｜>`}`,
  kimi: (calls) =>
    `${mark`<|tool_calls_section_begin|>`}${calls
      .map(
        ({ name, arguments: args }, index) =>
          `${mark`<|tool_call_begin|>`}functions.${name}:${index}${mark`<|tool_call_argument_begin|>`}${JSON.stringify(args)}${mark`<|tool_call_end|>`}`,
      )
      .join('')}${mark`<|tool_calls_section_end|>`}`,
  'gemma-call': (calls) =>
    calls.map(({ name, arguments: args }) => `${mark`<|tool_call>`}call:${name}${gemma(args)}${mark`<tool_call|>`}`).join(''),
  'nemotron-list': (calls) => mark`<TOOLCALL>` + list(calls) + mark`</TOOLCALL>`,
  'phi-list': (calls) => mark`<|tool_call|>` + list(calls) + mark`<|/tool_call|>`,
  'granite-list': (calls) => mark`<|tool_call|>` + list(calls),
  'granite-tag-list': (calls) => mark`<tool_call>` + list(calls),
  'command-list': (calls) => mark`<|START_ACTION|>` + list(calls, ['tool_name', 'parameters']) + mark`<|END_ACTION|>`,
  'pythonic-tagged': (calls) => mark`<|tool_call_start|>` + pythonic(calls) + mark`<|tool_call_end|>`,
  pythonic,
  'bare-json': (calls) => calls.map((call) => callObject(call, ['name', 'parameters'])).join('; '),
}

export interface ParseOptions {
  readonly unified?: FinishReason['unified']
  readonly tools?: readonly ToolDefinition[]
  readonly stop?: readonly string[]
  /** Sizes of the pieces of ids; one by one if absent. */
  readonly pieces?: readonly number[]
  readonly forced?: string
  readonly thinking?: 'open' | 'closed'
  readonly idForm?: TemplateProbe['idForm']
}

export interface Parsed extends ParsedCompletion {
  readonly all: readonly CompletionDelta[]
}

export interface RowParser {
  readonly syntax: ToolCallSyntax
  readonly tokenizer: TextTokenizer
  /** Ids of written text. Markers become their tokens if they have any; all else is spelled out. */
  encode(written: string): Int32Array
  parse(written: string, options?: ParseOptions): Parsed
}

/** The text without the signs around markers. */
export const plain = (written: string): string => written.replaceAll(begin, '').replaceAll(end, '')

const stopText = '<|stop|>'

/** A parser of one row over a tokenizer of ours. `special` makes markers special tokens. */
export async function rowParser(name: string, special: boolean): Promise<RowParser> {
  const syntax = toolCallSyntaxes.find((row) => row.name === name)!
  const written = writers[name]!([{ name: 'f', arguments: { a: 'b' } }])
  const inWriting = written.split(begin).flatMap((part) => (part.includes(end) ? part.slice(0, part.indexOf(end)) : []))
  const markers = [...syntax.opens, ...inWriting, ...(syntax.around ?? []), ...(syntax.channels ? harmonyMarkers : [])]
  const tokens = [...new Set([stopText, ...(special ? markers : []), ...(syntax.close && special ? [syntax.close] : [])])]
  await using folder = await writeModel({ template: '', special: tokens })
  const tokenizer = createTokenizer(await readFile(join(folder.directory, 'tokenizer.json'), 'utf8'), {})
  const stops = new Set(
    [stopText, ...(syntax.channels && special ? ['<|call|>', '<|return|>'] : [])].map((text) => tokenizer.tokenId(text)!),
  )
  const encode = (text: string): Int32Array => {
    const ids: number[] = []
    for (const [index, part] of text.split(begin).entries()) {
      const marked = index === 0 ? '' : part.slice(0, part.indexOf(end))
      const rest = index === 0 ? part : part.slice(marked.length + 1)
      const id = tokenizer.tokenId(marked)
      if (id !== null) ids.push(id)
      else ids.push(...spell(tokenizer, marked))
      ids.push(...spell(tokenizer, rest))
    }
    return Int32Array.from(ids)
  }
  return {
    syntax,
    tokenizer,
    encode,
    parse(text, { unified = 'stop', tools = someTools, stop = [], pieces = [], forced = '', thinking, idForm = 'any' } = {}) {
      const sampled = encode(text)
      const ids = unified === 'stop' ? Int32Array.from([...sampled, tokenizer.tokenId(stopText)!]) : sampled
      const parser = createCompletionParser({
        tokenizer,
        stopTokenIds: stops,
        syntax,
        reasoning: thinking === undefined ? null : reasoningTags[0]!,
        reasoningOpen: thinking === 'open',
        promptTokenIds: new Int32Array(),
        parallelCalls: true,
        tools,
        stop,
        forced,
        mintToolCallId: (index) => `id${index}`,
        idForm,
      })
      const all: CompletionDelta[] = []
      let at = 0
      for (let piece = 0; at < ids.length; piece += 1) {
        const size = pieces[piece % (pieces.length || 1)] ?? 1
        all.push(...parser.push(ids.subarray(at, at + size)))
        at += size
      }
      const finished = parser.finish({ unified })
      return { ...finished, all: [...all, ...finished.deltas] }
    },
  }
}

const someTools: readonly ToolDefinition[] = [{ name: 'f', parameters: {} }]

/** Ids that never form a special token. */
function spell(tokenizer: TextTokenizer, text: string): number[] {
  return text === '' ? [] : Array.from(text).flatMap((character) => [...tokenizer.encode(character)])
}

export const rowNames = toolCallSyntaxes.map(({ name }) => name)

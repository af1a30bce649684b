import { createHash } from 'node:crypto'
import { parse, tokenize } from '@huggingface/jinja'
import { formatTime } from './clock.ts'
import { compileTemplateProgram } from './compile-template.ts'
import { numeric } from './operators.ts'
import { pythonString } from './python-text.ts'
import { refuseChains } from './refuse-chains.ts'
import type { Node } from './syntax-tree.ts'
import { Callable, Dictionary, fromPlain, Namespace, type Value } from './values.ts'

export interface RenderInput {
  readonly messages: Value
  /** List of tools in the form of Chat Completions; `null` for none. */
  readonly tools: Value
  readonly addGenerationPrompt: boolean
  readonly now: Date
  /** Longest rendered text. A longer one throws RenderingTooLong. */
  readonly maxCharacters?: number | undefined
}

/** The template of a model, compiled once. */
export interface ChatTemplate {
  readonly source: string
  /** SHA-256 of the source, of the special tokens it may print and of its arguments. */
  readonly hash: string
  /** Renders messages. Throws what the template raises, and wherever Python would. */
  render(input: RenderInput): string
  /** Renders the same text in pieces. A growing conversation repeats the pieces of its messages. */
  renderPieces(input: RenderInput): string[]
}

/** Arguments of a template, such as `enable_thinking`: JSON values by name. */
export type TemplateArguments = Readonly<Record<string, unknown>>

/**
 * Compiles a Jinja chat template as transformers' `apply_chat_template` does (5.x: sandbox for immutable data, trimmed blocks, loop
 * controls, its own `tojson`). Throws SyntaxError for source that it cannot parse, or for an unsupported feature, which it names.
 */
export function compileTemplate(
  source: string,
  specialTokens: Readonly<Record<string, string>>,
  templateArguments: TemplateArguments = {},
): ChatTemplate {
  const normalised = source.replace(/\r\n?/g, '\n')
  const tokens = tokenize(normalised, { lstrip_blocks: true, trim_blocks: true })
  refuseChains(tokens)
  const { body } = parse(tokens) as unknown as { body: readonly Node[] }
  const program = compileTemplateProgram(body)
  const fixed = new Map<string, Value>(constants)
  for (const [name, value] of Object.entries({ ...specialTokens, ...templateArguments })) fixed.set(name, fromPlain(value))
  fixed.set('documents', null)
  const hash = createHash('sha256')
    .update(JSON.stringify([normalised, specialTokens, templateArguments]))
    .digest('hex')
  const renderPieces = ({ messages, tools, addGenerationPrompt, now, maxCharacters }: RenderInput) => {
    const variables = new Map(fixed)
    variables.set('strftime_now', new Callable(([format]) => formatTime(now, pythonString(format))))
    variables.set('messages', messages)
    variables.set('tools', tools)
    variables.set('add_generation_prompt', addGenerationPrompt)
    return program.run(variables, maxCharacters)
  }
  return { source: normalised, hash, renderPieces, render: (input) => renderPieces(input).join('') }
}

const constants: ReadonlyMap<string, Value> = new Map<string, Value>([
  ['range', new Callable(([first, second, third]) => range(first, second, third))],
  ['namespace', new Callable((args, keywords) => new Namespace(new Map([...fields(args), ...keywords])))],
  ['dict', new Callable((args, keywords) => new Dictionary([...fields(args), ...keywords]))],
  [
    'raise_exception',
    new Callable(([message]) => {
      throw new Error(message === undefined ? 'the template raised an exception' : pythonString(message))
    }),
  ],
])

function fields([first]: readonly Value[]): [string, Value][] {
  return first instanceof Dictionary ? [...first].map(([key, value]) => [String(key), value]) : []
}

function range(first: Value, second: Value, third: Value): Value[] {
  const number = (value: Value, fallback: number) => {
    if (value === undefined) return fallback
    const integer = numeric(value)
    if (integer === null) throw new TypeError('range() needs integers')
    return integer
  }
  const [start, stop] = second === undefined ? [0, number(first, 0)] : [number(first, 0), number(second, 0)]
  const step = number(third, 1)
  if (step === 0) throw new Error('range() arg 3 must not be zero')
  const values: Value[] = []
  for (let value = start; step > 0 ? value < stop : value > stop; value += step) values.push(value)
  return values
}

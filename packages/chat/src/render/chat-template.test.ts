import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { type JsonNode, readJson } from '../json/json-text.ts'
import { compileTemplate } from './chat-template.ts'
import { fromJson } from './values.ts'

const fixture = (name: string) => readFile(new URL(`../../fixtures/${name}`, import.meta.url), 'utf8')
const tokens = { bos_token: '<s>', eos_token: '</s>' }
const now = new Date(2026, 6, 4, 15, 6, 7)

interface Rendering {
  readonly text?: string
  readonly error?: string
}
interface Renderings {
  readonly templates: Readonly<Record<string, Rendering>>
  readonly expressions: readonly (Rendering & { readonly source: string })[]
}

const renderings = JSON.parse(await fixture('goldens/renderings.json')) as Renderings
const conversations = readJson(await fixture('conversations.json'))

function member(node: JsonNode, name: string): JsonNode | null {
  return node.kind === 'object' ? (node.members.get(name)?.node ?? null) : null
}

/** Returns `null` if the renderer refuses. */
function attempt(work: () => string): string | null {
  try {
    return work()
  } catch {
    return null
  }
}

test.each(Object.entries(renderings.templates))('renders as jinja2: %s', async (name, expected) => {
  const [file, conversation, mode] = name.split(' / ') as [string, string, string]
  const fields = member(conversations, conversation)!
  const template = compileTemplate(await fixture(`templates/${file}.jinja`), tokens)
  const tools = member(fields, 'tools')
  const text = attempt(() =>
    template.render({
      messages: fromJson(member(fields, 'messages')!),
      tools: tools ? fromJson(tools) : null,
      addGenerationPrompt: mode === 'prompt',
      now,
    }),
  )
  expect(text).toBe(expected.text ?? null)
})

test('a rendering ends where it has more characters than are wanted', () => {
  const template = compileTemplate('{% for m in messages %}{{ m.upper() }}{% endfor %}', tokens)
  const input = { messages: ['one', 'two', 3], tools: null, addGenerationPrompt: false, now }
  expect(() => template.render(input)).toThrow('upper')
  expect(() => template.render({ ...input, maxCharacters: 5 })).toThrow('the text has more than 5 characters')
  expect(template.render({ ...input, messages: ['one', 'two'], maxCharacters: 6 })).toBe('ONETWO')
})

const tool = member(conversations, 'lossless tools')!
const tools = member(tool, 'tools')!
const data = fromJson(member(tools.kind === 'array' ? tools.items[0]! : tools, 'function')!)

test.each(renderings.expressions.map(({ source, text }) => [source, text ?? null] as const))(
  'evaluates as jinja2: %s',
  (source, expected) => {
    const text = attempt(() =>
      compileTemplate(`{%- set data = messages -%}${source}`, tokens).render({
        messages: data,
        tools: null,
        addGenerationPrompt: false,
        now,
      }),
    )
    expect(text).toBe(expected)
  },
)

/** Conversations as JSON text, made from a seed: the text keeps spellings of numbers that values would lose. */
export function generateConversations(seed: number, count: number): Record<string, string> {
  const random = mulberry(seed)
  return Object.fromEntries(Array.from({ length: count }, (_, index) => [`generated ${seed}.${index}`, conversation(random)]))
}

type Random = () => number

function mulberry(seed: number): Random {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let value = Math.imul(state ^ (state >>> 15), state | 1)
    value ^= value + Math.imul(value ^ (value >>> 7), value | 61)
    return ((value ^ (value >>> 14)) >>> 0) / 2 ** 32
  }
}

const below = (random: Random, limit: number): number => Math.floor(random() * limit)
const pick = <T>(random: Random, values: readonly T[]): T => values[below(random, values.length)]!
const repeat = <T>(random: Random, most: number, make: () => T): T[] => Array.from({ length: below(random, most + 1) }, make)

const fragments = [
  ...[
    '',
    ' ',
    '\n',
    '\n\n',
    '\t',
    '\r\n',
    '  ',
    'plain words',
    'Ünïcödé',
    '漢字かな',
    '🙂👩\u200d🚀',
    'e\u0301',
    'שלום',
    '\u00a0',
    '\u0085',
    '\u2028',
  ],
  ...[
    '"quoted"',
    "it's",
    '\\',
    '\\n',
    '{{ x }}',
    '{% if %}',
    '<b>&amp;</b>',
    '<think>',
    '</think>',
    '<|im_end|>',
    '</s>',
    '[INST]',
    '<tool_call>',
  ],
  ...[
    '    indented',
    '- list\n- list',
    '```py\nprint(1)\n```',
    '0',
    '1.0',
    'None',
    'True',
    'null',
    '{"a": 1.0}',
    '<|turn>',
    '/nothink',
    '.',
  ],
]
const text = (random: Random): string => repeat(random, 4, () => pick(random, fragments)).join('')

const numbers = ['0', '-1', '7', '1.0', '2.50', '1e5', '1E-7', '1e-7', '1e16', '123456789012345678901', '0.1', '-0.0', '3.14159']
const keys = ['name', 'a', 'B', '10', '2', 'é', 'two words', 'items', 'get', 'type', 'x"y']

function json(random: Random, depth = 0): string {
  const kind = below(random, depth > 2 ? 5 : 7)
  if (kind === 0) return 'null'
  if (kind === 1) return pick(random, ['true', 'false'])
  if (kind === 2) return pick(random, numbers)
  if (kind < 5) return JSON.stringify(text(random))
  if (kind === 5) return `[${repeat(random, 3, () => json(random, depth + 1)).join(', ')}]`
  return object(random, depth + 1)
}

function object(random: Random, depth = 0): string {
  const names = new Set(repeat(random, 4, () => pick(random, keys)))
  return `{${[...names].map((name) => `${JSON.stringify(name)}: ${json(random, depth + 1)}`).join(', ')}}`
}

function schema(random: Random, depth = 0): string {
  const type = pick(random, ['string', 'integer', 'number', 'boolean', 'array', 'object'])
  const parts = [`"type": ${random() < 0.1 ? `["${type}", "null"]` : `"${type}"`}`]
  if (random() < 0.7) parts.push(`"description": ${JSON.stringify(text(random))}`)
  if (type === 'string' && random() < 0.3) parts.push(`"enum": ["a", ${JSON.stringify(text(random))}]`)
  if (random() < 0.2) parts.push(`"default": ${json(random, 3)}`)
  if (random() < 0.2) parts.push(`"minimum": ${pick(random, numbers)}`)
  if (type === 'array' && depth < 2) parts.push(`"items": ${schema(random, depth + 1)}`)
  if (type === 'object' && depth < 2) parts.push(properties(random, depth + 1))
  return `{${parts.join(', ')}}`
}

function properties(random: Random, depth: number): string {
  const names = [...new Set(repeat(random, 3, () => pick(random, keys)))]
  const fields = names.map((name) => `${JSON.stringify(name)}: ${schema(random, depth)}`).join(', ')
  const closed = random() < 0.4 ? `, "additionalProperties": ${pick(random, ['false', 'true'])}` : ''
  return `"properties": {${fields}}, "required": ${JSON.stringify(names.slice(0, 1))}${closed}`
}

function tool(random: Random, name: string): string {
  const description = random() < 0.85 ? `"description": ${JSON.stringify(text(random))}, ` : ''
  return `{"type": "function", "function": {"name": "${name}", ${description}"parameters": {"type": "object", ${properties(random, 0)}}}}`
}

function conversation(random: Random): string {
  const names = ['look_up', 'now', 'put'].slice(0, below(random, 4))
  const messages: string[] = []
  let calls = 0
  const say = (role: string, more = '') => messages.push(`{"role": "${role}", "content": ${JSON.stringify(text(random))}${more}}`)
  const thought = () => (random() < 0.4 ? `, "${pick(random, ['reasoning_content', 'thinking'])}": ${JSON.stringify(text(random))}` : '')
  if (random() < 0.5) say(random() < 0.9 ? 'system' : 'developer')
  for (let turn = 0; turn <= below(random, 4); turn += 1) {
    say('user')
    for (let step = 0; names.length > 0 && step < below(random, 4); step += 1) {
      const made = Array.from({ length: random() < 0.7 ? 1 : 2 }, () => {
        calls += 1
        const id = `abcde${String(calls).padStart(4, '0')}`
        const argumentsJson = random() < 0.2 ? JSON.stringify(object(random)) : object(random)
        return {
          id,
          json: `{"id": "${id}", "type": "function", "function": {"name": "${pick(random, names)}", "arguments": ${argumentsJson}}}`,
        }
      })
      const content = pick(random, ['""', '""', 'null', JSON.stringify(text(random))])
      messages.push(`{"role": "assistant", "content": ${content}${thought()}, "tool_calls": [${made.map((call) => call.json).join(', ')}]}`)
      for (const { id } of random() < 0.1 ? made.reverse() : made) say('tool', `, "tool_call_id": "${id}"`)
    }
    if (random() < 0.8) say('assistant', thought())
  }
  if (random() < 0.6) say('user')
  const tools = names.length > 0 ? `, "tools": [${names.map((name) => tool(random, name)).join(', ')}]` : ''
  return `{"messages": [${messages.join(', ')}]${tools}}`
}

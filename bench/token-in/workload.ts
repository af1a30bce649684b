import { words } from './write-word-model.ts'

/** Turns of a conversation, and the tokens that its prompt grows to. */
export const turns = 20
export const contextTokens = 32_768
/** Words in the arguments of a sampled call. */
const calledWords = 130
const callSyntaxTokens = 40

export type Growth = 'even' | 'bursts'

/** Words of the tool result before turn `turn`, so that the prompt of the last turn has about 32,000 tokens. */
export function resultWords(growth: Growth, turn: number): number {
  const sampled = calledWords + callSyntaxTokens
  const total = contextTokens - 1500 - turns * sampled
  if (growth === 'even') return Math.floor(total / (turns - 1))
  const small = 100
  return turn === 2 || turn === turns ? small : Math.floor((total - 2 * small) / (turns - 3))
}

/** `count` words, different for each `seed`. */
export function text(count: number, seed: number): string {
  let state = seed * 2_654_435_761 + 1
  const picked: string[] = []
  for (let index = 0; index < count; index += 1) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    picked.push(words[state % words.length]!)
  }
  return ` ${picked.join(' ')}`
}

export const tools = ['search', 'read_page', 'calculate'].map((name) => ({
  type: 'function',
  function: {
    name,
    description: text(20, name.length),
    parameters: { type: 'object', properties: { query: { type: 'string', description: text(10, 1) } }, required: ['query'] },
  },
}))

/** What the policy samples in turn `turn`. */
export const callText = (turn: number): string =>
  `<tool_call>\n{"name": "search", "arguments": {"query": "${text(calledWords, turn)}"}}\n</tool_call>`

import type { Message } from '@aworld-train/core'
import { createRandom, type Random } from './random.ts'
import { elementNames, elementSymbols } from './words.ts'

const attributes = ['atomic number', 'period', 'group', 'symbol'] as const
type Attribute = (typeof attributes)[number]

/** A way to go about a task: `right`, or the step that goes wrong. What a demonstration was told, it always copies faithfully. */
export type Decision =
  | 'right'
  | 'guess'
  | 'wrong-attribute'
  | 'first-value'
  | 'second-value'
  | 'wrong-operator'
  | 'lookup-then-guess'
  | 'answers-number'
  | 'answers-difference'

type Kind = 'one-hop' | 'two-hop' | 'comparison'
type Shares<T extends string> = Readonly<Partial<Record<T, number>>>

interface Phase {
  /** Share of the draws that are a comparison whatever `kinds` says. */
  readonly forcedComparison: number
  readonly right: Readonly<Record<Kind, number>>
}

export interface Demonstration {
  readonly kind: Kind
  readonly decision: Decision
  readonly messages: readonly Message[]
}

const kinds: Shares<Kind> = { 'one-hop': 0.45, 'two-hop': 0.4, comparison: 0.15 }

/** First the policy learns to copy what a tool says; then sloppy decisions set the reward that training starts from. */
const copying: Phase = { forcedComparison: 0.15, right: { 'one-hop': 0.85, 'two-hop': 0.85, comparison: 0.85 } }
const sloppy: Phase = { forcedComparison: 0, right: { 'one-hop': 0.22, 'two-hop': 0.2, comparison: 0.25 } }
const copyingShare = 0.7

const wrongDecisions: Readonly<Record<Kind, Shares<Decision>>> = {
  'one-hop': { guess: 0.4, 'wrong-attribute': 0.6 },
  'two-hop': { guess: 0.25, 'first-value': 0.15, 'second-value': 0.2, 'wrong-operator': 0.4 },
  comparison: { guess: 0.25, 'lookup-then-guess': 0.15, 'answers-number': 0.15, 'answers-difference': 0.45 },
}

/** Wrong decisions are always the same ones, and more frequent than the right one: greedy decoding takes them too, until training turns them round. */
const confusedWith: Readonly<Record<Attribute, Attribute>> = {
  'atomic number': 'period',
  period: 'group',
  group: 'symbol',
  symbol: 'atomic number',
}

export interface DemonstrationRequest {
  readonly seed: number
  /** Training step, from 0, of `steps` in all. */
  readonly step: number
  readonly steps: number
  readonly count: number
}

/** The conversations of one warm-up step, from the question on, over tables that are random and different in each. */
export function demonstrations({ seed, step, steps, count }: DemonstrationRequest): (readonly Message[])[] {
  return Array.from({ length: count }, (_, index) => drawDemonstration({ seed, step, steps, index }).messages)
}

/** One of them, with what was drawn for it. */
export function drawDemonstration({ seed, step, steps, index }: Omit<DemonstrationRequest, 'count'> & { index: number }): Demonstration {
  const random = createRandom(seed, step, index)
  const phase = step < Math.round(steps * copyingShare) ? copying : sloppy
  const kind = random.next() < phase.forcedComparison ? 'comparison' : draw(random, kinds)
  const decision = random.next() < phase.right[kind] ? 'right' : draw(random, wrongDecisions[kind])
  return { kind, decision, messages: demonstrate[kind](random, decision) }
}

const demonstrate: Readonly<Record<Kind, (random: Random, decision: Decision) => Message[]>> = {
  'one-hop': (random, decision) => {
    const name = random.pick(elementNames)
    // Symbols are the hardest to copy, so they are asked for twice as often.
    const attribute = random.pick<Attribute>([...attributes, 'symbol'])
    const talk = conversation(`${random.pick(['What is the', 'Give the'])} ${attribute} of ${name}?`)
    if (decision === 'guess') return talk.answer(randomValue(random, attribute))
    const field = decision === 'right' ? attribute : confusedWith[attribute]
    return talk.answer(talk.lookup(name, field, randomValue(random, field)))
  },

  'two-hop': (random, decision) => {
    const [a, b] = randomPair(random)
    const talk = conversation(`What is the sum of the atomic numbers of ${a} and ${b}?`)
    if (decision === 'guess') return talk.answer(String(random.integer(3, 235)))
    const x = talk.lookup(a, 'atomic number', randomValue(random, 'atomic number'))
    if (decision === 'first-value') return talk.answer(x)
    const y = talk.lookup(b, 'atomic number', randomValue(random, 'atomic number'))
    if (decision === 'second-value') return talk.answer(y)
    const operator = decision === 'right' ? '+' : '-'
    return talk.answer(talk.calculate(Number(x), operator, Number(y)))
  },

  comparison: (random, decision) => {
    const [a, b] = randomPair(random)
    const talk = conversation(`Which has the higher atomic number, ${a} or ${b}?`)
    if (decision === 'guess') return talk.answer(random.pick([a, b]))
    const x = talk.lookup(a, 'atomic number', randomValue(random, 'atomic number'))
    if (decision === 'lookup-then-guess') return talk.answer(random.pick([a, b]))
    // Two elements never share a number, so the difference always has a sign to go by.
    const y = talk.lookup(b, 'atomic number', String(1 + ((Number(x) - 1 + random.integer(1, 117)) % 118)))
    if (decision === 'answers-number') return talk.answer(random.pick([x, y]))
    const difference = talk.calculate(Number(x), '-', Number(y))
    if (decision === 'answers-difference') return talk.answer(difference)
    return talk.answer(difference.startsWith('-') ? b : a)
  },
}

/** A conversation under way; its tools answer what they are told to. */
function conversation(question: string) {
  const messages: Message[] = [{ role: 'user', content: question }]
  const call = (name: string, input: string, result: string): string => {
    const id = `call-${(messages.length + 1) / 2}`
    messages.push({ role: 'assistant', content: null, toolCalls: [{ id, name, arguments: input }] })
    messages.push({ role: 'tool', content: result, toolCallId: id })
    return result
  }
  return {
    /** The arguments are spaced as the chat template spaces JSON. */
    lookup: (name: string, attribute: Attribute, result: string) =>
      call('lookup', `{"name": "${name}", "attribute": "${attribute}"}`, result),
    calculate: (x: number, operator: '+' | '-' | '*', y: number) => {
      const value = operator === '+' ? x + y : operator === '-' ? x - y : x * y
      return call('calculate', `{"expression": "${x}${operator}${y}"}`, String(value))
    },
    answer: (content: string): Message[] => [...messages, { role: 'assistant', content }],
  }
}

function randomValue(random: Random, attribute: Attribute): string {
  switch (attribute) {
    case 'atomic number':
      return String(random.integer(1, 118))
    case 'period':
      return String(random.integer(1, 7))
    case 'group':
      return String(random.integer(1, 18))
    case 'symbol':
      return random.pick(elementSymbols)
  }
}

function randomPair(random: Random): [string, string] {
  const a = random.integer(0, elementNames.length - 1)
  const b = (a + random.integer(1, elementNames.length - 1)) % elementNames.length
  return [elementNames[a]!, elementNames[b]!]
}

function draw<T extends string>(random: Random, shares: Shares<T>): T {
  const entries = Object.entries(shares) as [T, number][]
  let left = random.next()
  for (const [item, share] of entries) {
    left -= share
    if (left < 0) return item
  }
  return entries.at(-1)![0]
}

import type { InvocationTrace, PromptOrigin, RolloutTrace } from '@aworld-train/core'

export type Origin = PromptOrigin | 'sampled'

export interface Token {
  /** The id in the policy's vocabulary; the text itself for a word of a message, and where vocabularies may differ. */
  readonly id: number | string
  readonly text: string
  readonly origin: Origin
  /** Place of its turn in the invocation's turns. */
  readonly turn: number
  readonly position: number
  /** `null` for a token that was not sampled; so are the next fields. */
  readonly logprob: number | null
  readonly trainerLogprob: number | null
  readonly version: number | null
  readonly advantage: number | null
  readonly isTrained: boolean
}

const streams = new WeakMap<InvocationTrace, Token[]>()

/** Every token of an invocation in order: for each turn the additions to the prompt, then the sampled tokens. */
export function tokensOf(trace: RolloutTrace, invocation: InvocationTrace): readonly Token[] {
  const cached = streams.get(invocation)
  if (cached) return cached
  const tokens: Token[] = []
  const text = (id: number) => trace.vocabularies[invocation.policy]?.[id] ?? `⟨${id}⟩`
  invocation.turns.forEach((turn, index) => {
    turn.promptIds.forEach((id, at) => {
      tokens.push({
        id,
        text: text(id),
        origin: turn.promptOrigins[at] ?? 'template',
        turn: index,
        position: tokens.length,
        logprob: null,
        trainerLogprob: null,
        version: null,
        advantage: null,
        isTrained: false,
      })
    })
    turn.completionIds.forEach((id, at) => {
      tokens.push({
        id,
        text: text(id),
        origin: 'sampled',
        turn: index,
        position: tokens.length,
        logprob: turn.logprobs[at] ?? null,
        trainerLogprob: turn.trainerLogprobs?.[at] ?? null,
        version: turn.weightVersions.findLast(({ fromToken }) => fromToken <= at)?.version ?? null,
        advantage: turn.advantage,
        isTrained: turn.isTrained,
      })
    })
  })
  streams.set(invocation, tokens)
  return tokens
}

/** Tokens whose ids are their texts, to compare them with those of another vocabulary. */
export const byText = (tokens: readonly Token[]): readonly Token[] => tokens.map((token) => ({ ...token, id: token.text }))

/** Whether the text alone of an invocation was recorded. */
export const isTextAlone = ({ turns }: InvocationTrace) =>
  turns.every(({ promptIds, completionIds }) => promptIds.length + completionIds.length === 0)

const words = new Intl.Segmenter('en', { granularity: 'word' })

/** Words of the messages of an invocation, with the white space before them: what was new in each request, then the answer. */
export function wordsOf({ turns }: InvocationTrace): readonly Token[] {
  const tokens: Token[] = []
  const add = (turn: number, origin: Origin, text: string) => {
    let space = ''
    for (const { segment } of [...words.segment(text), { segment: '' }]) {
      if (segment !== '' && segment.trim() === '') {
        space += segment
        continue
      }
      const whole = space + segment
      space = ''
      if (whole !== '')
        tokens.push({
          ...{ id: whole, text: whole, origin, turn, position: tokens.length },
          ...{ logprob: null, trainerLogprob: null, version: null, advantage: null, isTrained: false },
        })
    }
  }
  for (const [index, { messagesDelta, message }] of turns.entries()) {
    for (const { role, content } of messagesDelta) add(index, role === 'developer' ? 'system' : role, content ?? '')
    const calls = message.toolCalls?.map((call) => `${call.name} ${call.arguments}`) ?? []
    add(index, 'sampled', [message.content ?? '', ...calls].filter((text) => text !== '').join('\n'))
  }
  return tokens
}

/** Lower edges of the bins of probability, most likely first. */
const probabilityEdges = [0.99, 0.9, 0.7, 0.5, 0.2]
/** Bin of a sampled token: 0 nearly certain, 5 a surprise. */
export function surprise(logprob: number): number {
  const bin = probabilityEdges.findIndex((edge) => Math.exp(logprob) >= edge)
  return bin < 0 ? probabilityEdges.length : bin
}

export const colourings = ['probability', 'advantage', 'gap', 'origin'] as const
export type Colouring = (typeof colourings)[number]
/** Edges of the logprob gap between sampler and trainer. */
const gapEdges = [1e-6, 1e-4, 1e-3, 1e-2, 1e-1]

const advantageBin = (value: number) =>
  Math.abs(value) < 1e-9 ? 'a0' : `${value > 0 ? 'ap' : 'an'}${Math.abs(value) >= 1.5 ? 3 : Math.abs(value) >= 0.75 ? 2 : 1}`

/** Class of a token under a colouring. */
export function toneOf(token: Token, colouring: Colouring): string {
  if (colouring === 'origin') return token.origin === 'sampled' ? (token.isTrained ? 'o-trained' : 'o-sampled') : `o-${token.origin}`
  if (token.origin !== 'sampled' || token.logprob === null) return 'context'
  if (colouring === 'probability') return `p${surprise(token.logprob)}`
  if (colouring === 'advantage') return token.isTrained && token.advantage !== null ? advantageBin(token.advantage) : 'untrained'
  if (token.trainerLogprob === null) return 'untrained'
  const gap = Math.abs(token.trainerLogprob - token.logprob)
  const bin = gapEdges.findIndex((edge) => gap < edge)
  return `p${bin < 0 ? gapEdges.length : bin}`
}

export const legends: Readonly<Record<Colouring, readonly (readonly [tone: string, text: string])[]>> = {
  probability: [
    ['p0', '≥ .99'],
    ['p1', '.9'],
    ['p2', '.7'],
    ['p3', '.5'],
    ['p4', '.2'],
    ['p5', 'less'],
    ['context', 'not sampled'],
  ],
  advantage: [
    ['an3', '≤ −1.5'],
    ['an2', '−.75'],
    ['an1', '< 0'],
    ['a0', '0'],
    ['ap1', '> 0'],
    ['ap2', '.75'],
    ['ap3', '≥ 1.5'],
    ['untrained', 'not trained'],
  ],
  gap: [
    ['p0', '< 1e−6'],
    ['p1', '1e−6'],
    ['p2', '1e−4'],
    ['p3', '.001'],
    ['p4', '.01'],
    ['p5', '≥ .1'],
    ['untrained', 'not computed'],
  ],
  origin: [
    ['o-trained', 'sampled, trained'],
    ['o-sampled', 'sampled, not trained'],
    ['o-tool', 'tool'],
    ['o-user', 'user'],
    ['o-system', 'system'],
    ['o-template', 'template'],
  ],
}

/** Position of the least likely sampled token, of one turn or of all; 0 if none was sampled. */
export function leastLikely(tokens: readonly Token[], turn: number | null = null): number {
  let least = { position: 0, logprob: Number.POSITIVE_INFINITY }
  for (const { position, logprob, turn: of } of tokens) {
    if (logprob !== null && logprob < least.logprob && (turn === null || of === turn)) least = { position, logprob }
  }
  return least.position
}

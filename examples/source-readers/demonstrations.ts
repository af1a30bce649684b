import type { Message } from 'aworld-train'
import { planner, reader } from './agents.ts'
import { cities, numbers, pageOf, pick, pickCities, questionOf, type Random, sums } from './tasks.ts'

export const unknown = 'I do not know.'

/** An agent as the tool of another one, word for word: a small model reads its description as one token. */
const content = { type: 'string', description: 'What the agent is to do, with everything it needs to know.' }
const askReader = {
  name: reader.name,
  description: reader.desc!,
  parameters: { type: 'object', properties: { content }, required: ['content'] },
}
export const definitionsOf = ({ tools }: typeof planner) => tools.map(({ definition }) => definition)

/** A planner that is right asks about every city; one that is not forgets the last. */
export const planning = {
  tools: [...definitionsOf(planner), askReader],
  /** Share of the last demonstrations that are right. */
  right: 0.4,
  demonstrate(random: Random, right: boolean): Message[] {
    const names = pickCities(random)
    const requests = right ? names : names.slice(0, -1)
    const results = requests.map(() => (random() < 0.1 ? unknown : pick(random, numbers)))
    return [
      { role: 'system', content: planner.systemPrompt! },
      { role: 'user', content: questionOf(names) },
      ...call('reader', ...requests.map((city) => ({ content: city }))),
      ...resultsOf(...results),
      ...addition(random, results),
    ]
  },
}

/** What one agent is shown before it is trained. */
export type Demonstrations = typeof planning

/** A reader that is right opens the page; one that is not gives up. */
export const reading: Demonstrations = {
  tools: definitionsOf(reader),
  right: 0.6,
  demonstrate(random, right) {
    const [city, number] = [pick(random, cities), pick(random, numbers)]
    return [
      { role: 'system', content: reader.systemPrompt! },
      { role: 'user', content: city },
      ...(right ? [...call('open', { city }), ...resultsOf(pageOf(random, number))] : []),
      { role: 'assistant', content: right ? String(number) : unknown },
    ]
  },
}

/** A turn of tool calls. */
export const call = (name: string, ...list: readonly object[]): Message[] => [
  {
    role: 'assistant',
    content: null,
    toolCalls: list.map((each, index) => ({ id: String(index), name, arguments: JSON.stringify(each) })),
  },
]

export const resultsOf = (...results: readonly (string | number)[]): Message[] =>
  results.map((result, index) => ({ role: 'tool', content: String(result), toolCallId: String(index) }))

/** The end of a conversation. The tool says any number: the policy learns to repeat it. */
export function addition(random: Random, found: readonly (string | number)[]): Message[] {
  if (found.includes(unknown)) return [{ role: 'assistant', content: unknown }]
  const sum = pick(random, sums)
  return [...call('add', { numbers: found }), ...resultsOf(sum), { role: 'assistant', content: sum }]
}

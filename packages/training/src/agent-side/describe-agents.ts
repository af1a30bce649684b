import { type AgentDeclaration, didYouMean, type RowSelection, TrainError } from '@aworld-train/core'

type Agents = readonly Pick<AgentDeclaration, 'name' | 'trainable' | 'model'>[]

const rules: Readonly<Record<Extract<RowSelection, string>, string>> = {
  all: 'every conversation of a rollout is a row',
  last: 'of each rollout only the conversation that gave the answer is trained',
  longest: 'of each rollout only the longest conversation is trained',
}

const shown = (rows: RowSelection) => (typeof rows === 'string' ? `"${rows}"` : `{ role: "${rows.role}" }`)
const ruleOf = (rows: RowSelection) =>
  typeof rows === 'string' ? rules[rows] : `of each rollout only the last conversation of "${rows.role}" is trained`

const trainedOf = (agents: Agents) => agents.flatMap(({ name, trainable }) => (trainable ? [name] : []))

/** Throws CONFIG_INVALID for `rows` of an agent that is not trained. */
export function checkRows(agents: Agents, rows: RowSelection): void {
  const trained = trainedOf(agents)
  if (typeof rows === 'string' || trained.includes(rows.role)) return
  const what = agents.some(({ name }) => name === rows.role) ? 'an agent that is not trained' : 'no agent of the program'
  const message = `rows.role is "${rows.role}", which is ${what}; the trained agents are ${trained.map((name) => `"${name}"`).join(', ')}.${didYouMean(rows.role, trained)}`
  throw new TrainError('CONFIG_INVALID', message)
}

/** A warning where several agents are trained and `rows` leaves some of them out without naming one; otherwise `null`. */
export function rowsWarning(agents: Agents, rows: RowSelection): string | null {
  const trained = trainedOf(agents)
  if (typeof rows !== 'string' || rows === 'all' || trained.length < 2) return null
  return `rows is "${rows}" and ${trained.length} agents are trained (${trained.join(', ')}): ${rules[rows]}, and everything else that they sample is left out. Name one with { role: "${trained[0]}" }.`
}

/**
 * Describes the agents of a training in one line: which are trained, by which of several policies, which are frozen and, if several are trained, which `rows` a framework
 * trains.
 */
export function describeAgents(agents: Agents, rows: RowSelection | null): string {
  const trained = trainedOf(agents)
  const named = agents.flatMap(({ name, trainable, model }) => (trainable ? [model === undefined ? name : `${name} (${model})`] : []))
  const frozen = agents.flatMap(({ name, trainable }) => (trainable ? [] : [name]))
  return [
    `${named.join(', ')} trained`,
    ...(frozen.length > 0 ? [`${frozen.join(', ')} frozen`] : []),
    ...(rows !== null && trained.length > 1 ? [`rows ${shown(rows)}: ${ruleOf(rows)}`] : []),
  ].join('; ')
}

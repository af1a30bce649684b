import type { AgentDeclaration, RowSelection } from '@aworld-train/core'

const rules: Readonly<Record<RowSelection, string>> = {
  all: 'every conversation of a rollout is a row',
  last: 'of each rollout only the conversation that ended last is trained',
  longest: 'of each rollout only the longest conversation is trained',
}

/**
 * Describes the agents of a training in one line: which are trained, which are frozen and, if several are trained, which `rows` a framework
 * trains.
 */
export function describeAgents(agents: readonly Pick<AgentDeclaration, 'name' | 'trainable'>[], rows: RowSelection | null): string {
  const [trained, frozen] = [true, false].map((wanted) => agents.filter(({ trainable }) => trainable === wanted).map(({ name }) => name))
  return [
    `${trained!.join(', ')} trained`,
    ...(frozen!.length > 0 ? [`${frozen!.join(', ')} frozen`] : []),
    ...(rows !== null && trained!.length > 1 ? [`rows "${rows}": ${rules[rows]}`] : []),
  ].join('; ')
}

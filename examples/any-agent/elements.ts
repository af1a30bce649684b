import type { AgentTask } from 'aworld-train'

export const instructions = 'Answer questions about chemical elements. Look numbers up.'

export const lookupDescription = 'Gives the atomic number of an element.'

export const atomicNumbers: Readonly<Record<string, number>> = {
  carbon: 6,
  oxygen: 8,
  neon: 10,
  sodium: 11,
  iron: 26,
  copper: 29,
  zinc: 30,
  silver: 47,
  tin: 50,
  gold: 79,
  mercury: 80,
  lead: 82,
}

/** What the tool of every agent here says: a number, or that it knows none. */
export function lookup(name: string): string {
  const number = Object.hasOwn(atomicNumbers, name) ? atomicNumbers[name] : undefined
  return number === undefined ? `There is no element "${name}".` : String(number)
}

/** The text of a task. */
export function questionOf({ input }: AgentTask): string {
  return typeof input === 'string' ? input : (input.at(-1)?.content ?? '')
}

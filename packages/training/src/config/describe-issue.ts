import { didYouMean } from '@aworld-train/core'
import type { z } from 'zod'

const nouns: Readonly<Record<string, string>> = {
  object: 'a section',
  record: 'a section',
  array: 'a list',
  tuple: 'a list',
  string: 'text',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  null: 'null',
}

const noun = (expected: string): string => nouns[expected] ?? expected

/** Describes a bound on a length in words: a minimum of one is "not empty", any other names a number of entries or characters. */
function lengthOf({ origin, bound, atLeast }: { origin: string; bound: number | bigint; atLeast: boolean }): string {
  if (atLeast && Number(bound) === 1) return 'must not be empty'
  return `must have at ${atLeast ? 'least' : 'most'} ${bound} ${origin === 'string' ? 'characters' : 'entries'}`
}

/** The allowed names, if the value must be one of several names. */
function namesOf(issue: z.core.$ZodIssue): string[] {
  if (issue.code === 'invalid_value') return issue.values.map(String)
  if (issue.code !== 'invalid_union' || !issue.message.includes('discriminator')) return []
  return [...issue.message.matchAll(/'([^']+)'/g)].map(([, name]) => name!)
}

/** Describes the value that is wanted, such as `must be a whole number`. A message of the schema's own stays as it is. */
function wantedOf(issue: z.core.$ZodIssue): string {
  switch (issue.code) {
    case 'invalid_type':
      return `must be ${noun(issue.expected)}`
    case 'too_small':
    case 'too_big': {
      const atLeast = issue.code === 'too_small'
      const bound = atLeast ? issue.minimum : issue.maximum
      if (!['number', 'int', 'bigint'].includes(issue.origin)) return lengthOf({ origin: issue.origin, bound, atLeast })
      if (!issue.inclusive) return `must be ${atLeast ? 'above' : 'below'} ${bound}`
      return `must be at ${atLeast ? 'least' : 'most'} ${bound}`
    }
    case 'invalid_value':
      return issue.message.startsWith('Invalid ') ? toChoice(namesOf(issue)) : issue.message
    case 'invalid_union': {
      const names = namesOf(issue)
      if (names.length > 0) return toChoice(names)
      const alternatives = issue.errors.flatMap(([first]) => (first && first.path.length === 0 ? [wantedOf(first)] : []))
      return alternatives.length > 0 ? [...new Set(alternatives)].join(', or ') : 'has no form that is known'
    }
    case 'invalid_key':
      return `its name ${issue.issues[0]?.message ?? 'is none that is known'}`
    default:
      return issue.message
  }
}

const toChoice = (names: readonly string[]): string => `must be ${names.length === 1 ? '' : 'one of '}${names.join(', ')}`

/** Describes an issue of a schema in one sentence: place, value, and the value that is wanted. */
export function describeIssue(issue: z.core.$ZodIssue, value: unknown): string {
  const path = issue.path.join('.')
  const where = path ? `"${path}"` : 'the configuration'
  const what = value === undefined ? 'missing' : JSON.stringify(value)
  return `${where} is ${what}: ${wantedOf(issue)}.${typeof value === 'string' ? didYouMean(value, namesOf(issue)) : ''}`
}

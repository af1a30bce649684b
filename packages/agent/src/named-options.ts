import { isRecord, TrainError } from '@aworld-train/core'
import { suggest } from './suggest.ts'

type SnakeCase<Text extends string> = Text extends `${infer Head}${infer Tail}`
  ? Tail extends Uncapitalize<Tail>
    ? `${Lowercase<Head>}${SnakeCase<Tail>}`
    : `${Lowercase<Head>}_${SnakeCase<Tail>}`
  : Text

/** Options that may be written in camelCase or, as in Python, in snake_case. */
export type EitherCase<Options> = Options & { readonly [Key in keyof Options & string as SnakeCase<Key>]?: Options[Key] }

export interface OptionNames {
  /** Owner of the options in messages, such as `Agent "solver"`. */
  readonly owner: string
  readonly optionNames: readonly string[]
  /** AWorld's names that have no effect here and change no result. */
  readonly withoutEffect?: readonly string[]
  /** AWorld's names that would change a result, with the remedy. */
  readonly refused?: Readonly<Record<string, string>>
  /** Values of refused names that change nothing, besides `null`, `false` and `[]`. */
  readonly neutral?: Readonly<Record<string, unknown>>
}

export interface NamedOptions {
  readonly options: Record<string, unknown>
  /** AWorld's keys among the options that have no effect. */
  readonly ignored: readonly string[]
  /** Options that were written as `undefined` or `null`, under their camelCase names. */
  readonly blank: readonly string[]
}

export const toCamelCase = (key: string) => key.replace(/(?<=.)_+([a-z0-9])/g, (_, letter: string) => letter.toUpperCase())

/**
 * Reads options under their camelCase names; those that are `null` are absent. Unknown, refused or contradicting keys throw CONFIG_INVALID.
 */
export function readNamedOptions(
  input: unknown,
  { owner, optionNames, withoutEffect = [], refused = {}, neutral = {} }: OptionNames,
): NamedOptions {
  if (!isRecord(input)) throw new TrainError('CONFIG_INVALID', `${owner}: expected an object of options, got ${describeValue(input)}.`)
  const options: Record<string, unknown> = {}
  const ignored: string[] = []
  const blank: string[] = []
  for (const [key, value] of Object.entries(input)) {
    const name = toCamelCase(key)
    if (optionNames.includes(name)) {
      if (value === undefined || value === null) {
        blank.push(name)
        continue
      }
      if (Object.hasOwn(options, name) && options[name] !== value) {
        throw new TrainError('CONFIG_INVALID', `${owner}: "${name}" is given twice with different values; keep one of its spellings.`)
      }
      options[name] = value
    } else if (withoutEffect.includes(name)) {
      ignored.push(key)
    } else if (Object.hasOwn(refused, name)) {
      if (
        value === undefined ||
        value === null ||
        (value === false && !Object.hasOwn(neutral, name)) ||
        (Array.isArray(value) && value.length === 0)
      )
        continue
      if (Object.hasOwn(neutral, name) && neutral[name] === value) continue
      throw new TrainError('CONFIG_INVALID', `${owner}: "${key}" is not supported; ${refused[name]}`)
    } else {
      const near = suggest(key, optionNames)
      const remedy = near ? `did you mean "${near}"?` : `known options: ${optionNames.join(', ')}.`
      throw new TrainError('CONFIG_INVALID', `${owner}: unknown option "${key}"; ${remedy}`)
    }
  }
  return { options, ignored, blank }
}

/** A short name of any value for a message. */
export function describeValue(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'an array'
  if (typeof value === 'object') return 'an object'
  if (typeof value === 'string') return value === '' ? 'an empty string' : JSON.stringify(value.slice(0, 80))
  return `${typeof value}${value === undefined ? '' : ` ${String(value).slice(0, 80)}`}`
}

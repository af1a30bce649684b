import { readFileSync } from 'node:fs'
import { parseEnv } from 'node:util'
import { suggest, TrainError } from '@aworld-train/core'
import { settingKeys } from './keys.ts'

/** The keys of the environment. */
export interface Settings {
  /** Values by key, without those that are empty or still a placeholder. */
  readonly values: ReadonlyMap<string, string>
  /** Notes about the file for a person, one sentence each. */
  readonly notices: readonly string[]
}

export interface SettingsSource {
  /** The `.env` file; `null` if there is none. */
  readonly file: string | null
  /** Variables of the process, which win over the file. */
  readonly variables: Readonly<Record<string, string | undefined>>
}

const names: ReadonlySet<string> = new Set(settingKeys.map(({ name }) => name))
const placeholder = /^<YOUR_\w+>$/

/**
 * Reads the keys, including `${NAME}` in values. Throws CONFIG_INVALID for a file that cannot be read and for keys that
 * refer to each other in a circle.
 */
export function readSettings({ file, variables }: SettingsSource): Settings {
  const lines = file === null ? {} : parseEnv(readText(file))
  const notices: string[] = []
  const expanded = new Map<string, string>()

  const expand = (name: string, path: readonly string[]): string => {
    const variable = variables[name]
    if (variable) return variable
    const value = expanded.get(name)
    if (value !== undefined) return value
    if (path.includes(name)) {
      const circle = [...path.slice(path.indexOf(name)), name].join(' → ')
      throw new TrainError('CONFIG_INVALID', `${file} has keys that refer to each other in a circle: ${circle}; give one of them a value.`)
    }
    const text = (lines[name] ?? '').replaceAll(/\$\{(?<other>\w+)\}/g, (_, other: string) => {
      if (lines[other] === undefined && variables[other] === undefined)
        notices.push(`${name} refers to ${other}, which is not set; the reference is left empty.`)
      return expand(other, [...path, name])
    })
    expanded.set(name, text)
    return text
  }

  const values = new Map<string, string>()
  for (const { name, unused } of settingKeys) {
    const value = expand(name, [])
    if (value === '' || placeholder.test(value)) continue
    values.set(name, value)
    if (unused !== undefined) notices.push(`${name} is set and not used: ${unused}.`)
  }
  for (const name of Object.keys(lines)) {
    const near = names.has(name) ? null : suggest(name, [...names])
    if (near) notices.push(`${name} is no key of the environment; ${near} is.`)
  }
  return { values, notices }
}

function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (cause) {
    throw new TrainError('CONFIG_INVALID', `The keys in ${file} cannot be read: ${(cause as Error).message}.`, { cause })
  }
}

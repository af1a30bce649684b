import type { LocalConfig } from './local-config.ts'

/** The dotted names of what can be set below `Section`; mappings of names of others, lists and sections that may be `null` are one setting. */
type NamesBelow<Section> = {
  [Key in keyof Section & string]: [Section[Key]] extends [readonly unknown[]]
    ? Key
    : [Section[Key]] extends [object]
      ? string extends keyof Section[Key]
        ? Key
        : `${Key}.${NamesBelow<Section[Key]>}`
      : Key
}[keyof Section & string]

/** The dotted name of a setting of a configuration, such as `training.learningRate`. */
export type SettingName = NamesBelow<LocalConfig>

/** Settings that a trainer does not read, each with the reason that a note gives to who writes it. */
export type InertSettings = Readonly<Partial<Record<SettingName, string>>>

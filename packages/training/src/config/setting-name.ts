import type { LocalConfig } from './local-config.ts'

/**
 * The dotted names of the settings below `Section`. A mapping with keys that are not ours, a list, and a section that may be `null` each
 * count as one setting.
 */
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

/** Settings that a trainer does not read, each with the reason that its note gives. */
export type InertSettings = Readonly<Partial<Record<SettingName, string>>>

import { createHash } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { stableHash } from '@aworld-train/core'
import { callSettingsOf } from '../config/call-settings.ts'
import type { LocalConfig } from '../config/local-config.ts'
import type { LoadedDataset } from '../dataset/dataset-types.ts'
import { parseExportPath } from './load-export.ts'

/** Tasks and answers of a dataset. */
export const datasetHash = ({ tasks, answers }: LoadedDataset) => [tasks.map(({ hash }) => hash), [...answers.values()]]

type Places = Pick<LocalConfig, 'executor' | 'gateway' | 'logging' | 'projectName' | 'experimentName'>

/** The settings that change a training, by names for people. Places of metrics, of logs and of agents do not; the experiment is in the name. */
export function settingInputs(settings: Places): Record<string, unknown> {
  const { executor: _executor, gateway, logging: _logging, projectName: _project, experimentName: _experiment, ...rest } = settings
  return Object.fromEntries(
    Object.entries({ ...rest, gateway: callSettingsOf(gateway) }).map(([key, value]) => [`the setting ${key}`, value]),
  )
}

/** A short hash of each input, by its name. */
export const hashesByName = (inputs: Readonly<Record<string, unknown>>): Record<string, string> =>
  Object.fromEntries(Object.entries(inputs).map(([name, input]) => [name, stableHash(input).slice(0, 16)]))

/** Hash of the bytes of the file in `./file.ts#name`. */
export const exportHash = (path: string, directory: string) => bytesHash(parseExportPath(path, directory).file)

/** SHA-256 of a file; `null` if it does not exist, which its loading reports. */
export function bytesHash(file: string): string | null {
  return existsSync(file) ? createHash('sha256').update(readFileSync(file)).digest('hex') : null
}

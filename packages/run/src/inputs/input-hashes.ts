import { createHash } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { stableHash } from '@aworld-train/core'
import type { LoadedDataset } from '@aworld-train/training'
import { parseExportPath } from './load-export.ts'

/** Tasks and answers of a dataset. */
export const datasetHash = ({ tasks, answers }: LoadedDataset) => [tasks.map(({ hash }) => hash), [...answers.values()]]

/** A short hash of each input, by its name. */
export const hashesByName = (inputs: Readonly<Record<string, unknown>>): Record<string, string> =>
  Object.fromEntries(Object.entries(inputs).map(([name, input]) => [name, stableHash(input).slice(0, 16)]))

/** Hash of the bytes of the file in `./file.ts#name`. */
export const exportHash = (path: string, directory: string) => bytesHash(parseExportPath(path, directory).file)

/** SHA-256 of a file; `null` if it does not exist, which its loading reports. */
export function bytesHash(file: string): string | null {
  return existsSync(file) ? createHash('sha256').update(readFileSync(file)).digest('hex') : null
}

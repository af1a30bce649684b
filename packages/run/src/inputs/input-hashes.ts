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

/** Bytes of the file that `./file.ts#name` names. */
export const exportHash = (path: string, directory: string) => bytesHash(parseExportPath(path, directory).file)

/** SHA-256 of a file; `null` for a file that is not there; loading it reports that. */
export function bytesHash(file: string): string | null {
  return existsSync(file) ? createHash('sha256').update(readFileSync(file)).digest('hex') : null
}

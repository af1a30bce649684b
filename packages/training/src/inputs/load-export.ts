import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { errorMessage, suggest, TrainError } from '@aworld-train/core'

export interface ExportPath {
  /** Absolute path of the module. */
  readonly file: string
  /** `undefined`: the default export, or else the only one. */
  readonly name: string | undefined
}

/** Splits `./file.ts#name` into an absolute path and the name of an export. */
export function parseExportPath(path: string, baseDirectory: string): ExportPath {
  const hash = path.lastIndexOf('#')
  const file = hash < 0 ? path : path.slice(0, hash)
  return { file: resolve(baseDirectory, file), name: hash < 0 ? undefined : path.slice(hash + 1) }
}

/** Imports one export of a module. MODULE_INVALID names the file, the export and the exports that exist. */
export async function loadExport(path: string, baseDirectory: string): Promise<unknown> {
  const { file, name } = parseExportPath(path, baseDirectory)
  if (!existsSync(file)) throw new TrainError('MODULE_INVALID', `There is no module ${file}; correct "${path}".`)
  let module: Record<string, unknown>
  try {
    module = (await import(pathToFileURL(file).href)) as Record<string, unknown>
  } catch (cause) {
    throw new TrainError('MODULE_INVALID', `${file} could not be imported: ${errorMessage(cause)}`, {
      cause,
    })
  }
  const names = Object.keys(module)
  const exportName = name ?? ('default' in module ? 'default' : names.length === 1 ? names[0] : undefined)
  if (exportName === undefined) {
    throw new TrainError(
      'MODULE_INVALID',
      `${file} has no default export; name one of its exports: ${names.map((each) => `${path}#${each}`).join(', ') || 'it has none'}.`,
    )
  }
  if (!(exportName in module)) {
    const close = suggest(exportName, names)
    throw new TrainError(
      'MODULE_INVALID',
      `${file} does not export "${exportName}"${close ? `; did you mean "${close}"?` : `; it exports ${names.join(', ') || 'nothing'}.`}`,
    )
  }
  return module[exportName]
}

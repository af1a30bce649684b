import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { extname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { TrainError } from '@aworld-train/core'

/** The built page, with its files by their path from the page's address. */
export interface PageFiles {
  readonly html: string
  readonly assets: ReadonlyMap<string, { readonly type: string; readonly bytes: Buffer }>
}

const types: Readonly<Record<string, string>> = {
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.woff2': 'font/woff2',
}

/** Reads the built page. Throws CONFIG_INVALID if it has not been built. */
export function readPageFiles(): PageFiles {
  // The folder is the same, whether this module is a source or compiled.
  const folder = fileURLToPath(new URL('../dist/page/', import.meta.url))
  if (!existsSync(join(folder, 'index.html')))
    throw new TrainError(
      'CONFIG_INVALID',
      `The dashboard's page is not in ${folder}; build it with "node packages/dashboard/scripts/build-page.mjs".`,
    )
  const assets = readdirSync(join(folder, 'assets')).map(
    (name) =>
      [
        `/assets/${name}`,
        { type: types[extname(name)] ?? 'application/octet-stream', bytes: readFileSync(join(folder, 'assets', name)) },
      ] as const,
  )
  return { html: readFileSync(join(folder, 'index.html'), 'utf8'), assets: new Map(assets) }
}

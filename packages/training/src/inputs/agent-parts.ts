import { readFileSync, realpathSync, statSync } from 'node:fs'
import { createRequire, findPackageJSON, isBuiltin } from 'node:module'
import { dirname, isAbsolute, relative, resolve, sep } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { bytesHash } from './input-hashes.ts'

/** Types are erased before a module runs, so a module that is imported only for types need not exist. */
const typeImports = /\b(?:import|export)\s+type\s+(?!from\b)[^'"`;]*?\bfrom\s*(['"])[^'"\n]+\1/g
/** The imports of a module that its text shows. */
const imports = /\b(?:from|import|require)\s*\(?\s*(?:\/\*[^*]*\*\/\s*)?(['"`])([^'"`\n$]+)\1/g
const scripts = /\.[cm]?[jt]sx?$/

/** Whether a package's version identifies it. Packages from package managers are never edited, and ours have versioned protocols. */
const isInstalled = (name: string, folder: string) =>
  folder.split(sep).includes('node_modules') || name === 'aworld-train' || name.startsWith('@aworld-train/')

interface Manifest {
  readonly name?: string
  readonly version?: string
}

interface Module {
  readonly file: string
  /** The folder that its name is relative to: the agent's, or a linked package's, whose name is the prefix. */
  readonly root: { readonly folder: string; readonly prefix: string }
}

const isFile = (path: string) => statSync(path, { throwIfNoEntry: false })?.isFile() ?? false

/**
 * Lists the parts of the modules in `files`: each file of the project that they import, however deep, as its path from `directory` with a
 * hash of its bytes, and each package that these import, as its name with its version. A file of a linked package counts as one of the
 * project.
 */
export function moduleParts(files: readonly string[], directory: string): Record<string, string> {
  const parts: Record<string, string> = {}
  const seen = new Set<string>()
  const pending: Module[] = files.map((file) => ({ file, root: { folder: directory, prefix: '' } }))

  function follow(specifier: string, { file: from, root }: Module): void {
    if (isBuiltin(specifier)) return
    if (/^(\.{0,2}\/|file:|#)/.test(specifier) || isAbsolute(specifier)) {
      const file = resolveFrom(specifier, from)
      if (file !== null) pending.push({ file, root })
      return
    }
    const manifest = findManifest(specifier, from)
    if (manifest === null) return
    const { name = 'without a name', version = 'without a version' } = JSON.parse(readFileSync(manifest, 'utf8')) as Manifest
    parts[`package ${name}`] = version
    const folder = realpathSync(dirname(manifest))
    const file = isInstalled(name, folder) ? null : resolveFrom(specifier, from)
    if (file !== null) pending.push({ file, root: { folder, prefix: `${name}/` } })
  }

  for (let next = pending.shift(); next !== undefined; next = pending.shift()) {
    const { file, root } = next
    if (seen.has(file)) continue
    seen.add(file)
    parts[root.prefix + relative(root.folder, file).replaceAll(sep, '/')] = bytesHash(file) ?? 'missing'
    if (!scripts.test(file) || !isFile(file)) continue
    const text = readFileSync(file, 'utf8').replace(typeImports, '')
    for (const [, , specifier] of text.matchAll(imports)) follow(specifier!, next)
  }
  return parts
}

/** The file that a specifier means; `null` if there is none, as for words of a comment that look like an import. */
function resolveFrom(specifier: string, from: string): string | null {
  const path = specifier.startsWith('file:') ? fileURLToPath(specifier) : resolve(dirname(from), specifier.replace(/[?#].*$/, ''))
  if (isFile(path)) return path
  try {
    return createRequire(from).resolve(specifier)
  } catch {
    return null
  }
}

function findManifest(specifier: string, from: string): string | null {
  try {
    return findPackageJSON(specifier, pathToFileURL(from)) ?? null
  } catch {
    return null
  }
}

import { existsSync, readFileSync, realpathSync } from 'node:fs'
import { dirname, join } from 'node:path'

/** The folder of the package that a file belongs to. */
export function packageOf(path: string): string {
  for (let folder = dirname(path); ; folder = dirname(folder)) {
    if (existsSync(join(folder, 'package.json'))) return folder
    if (folder === dirname(folder)) throw new Error(`${path} is in no package: no folder above it has a package.json.`)
  }
}

/**
 * The folders of a package and of all its dependencies, wherever npm has put them, including the links of a workspace. The package's own
 * optional dependencies are left out unless they are asked for.
 */
export function packageFolders(root: string, withOptional: boolean): string[] {
  const folders = new Set<string>()
  const visited = new Set<string>()
  const visit = (folder: string): void => {
    const real = realpathSync(folder)
    folders.add(folder)
    if (visited.has(real)) return
    visited.add(real)
    folders.add(real)
    const { dependencies = {}, optionalDependencies = {} } = JSON.parse(readFileSync(join(real, 'package.json'), 'utf8'))
    const optional = folder === root && !withOptional ? {} : optionalDependencies
    for (const name of Object.keys({ ...dependencies, ...optional })) {
      const found = findDependency(real, name)
      if (found !== null) visit(found)
    }
  }
  visit(root)
  return [...folders]
}

function findDependency(from: string, name: string): string | null {
  for (let folder = from; ; folder = dirname(folder)) {
    const candidate = join(folder, 'node_modules', name)
    if (existsSync(join(candidate, 'package.json'))) return candidate
    if (folder === dirname(folder)) return null
  }
}

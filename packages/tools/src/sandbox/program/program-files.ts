import { existsSync, lstatSync, readdirSync, readlinkSync, realpathSync, statSync } from 'node:fs'
import { basename, dirname, isAbsolute, join, resolve } from 'node:path'

/**
 * Parts of a program besides the folders of the system: the files that its command and arguments name by absolute paths, the packages that
 * Node finds from there, and the Python environment of the command. Other files beside them are not included.
 */
export function programFiles(command: readonly string[]): string[] {
  const files = command.filter((word) => isAbsolute(word) && existsSync(word) && statSync(word).isFile())
  return files.flatMap(linksOf).flatMap((file) => [file, ...nodePackages(file), ...pythonFiles(file)])
}

/** Drops paths that lie below another. */
export function outermost(paths: readonly string[]): string[] {
  const distinct = [...new Set(paths)]
  return distinct.filter((path) => !distinct.some((other) => path.startsWith(`${other}/`)))
}

/** The reason why other users cannot read a path, with a remedy; null if they can. */
export function closedToOthers(path: string): string | null {
  const mode = (part: string) => statSync(part).mode & 0o007
  const needed = statSync(path).isFile() ? 4 : 5
  if ((mode(path) & needed) < needed) return refusal(path, path, `chmod o+${needed === 4 ? 'r' : 'rx'}`)
  for (let folder = dirname(realpathSync(path)); ; folder = dirname(folder)) {
    if ((mode(folder) & 1) === 0) return refusal(path, folder, 'chmod o+x')
    if (folder === dirname(folder)) return null
  }
}

const refusal = (path: string, part: string, remedy: string) =>
  `${path} cannot be read by every user, and jails run as users of their own where this process is root; keep it elsewhere, start as another user, or run: ${remedy} ${part}`

/** A path, and the targets of its links one after the other. */
function linksOf(path: string): string[] {
  const paths = [path]
  for (let at = path; lstatSync(at).isSymbolicLink(); paths.push(at)) at = resolve(dirname(at), readlinkSync(at))
  return [...paths, realpathSync(path)]
}

/** Packages in the folders above a file, and the files that tell Node how to read it. */
function nodePackages(file: string): string[] {
  const folder = dirname(file)
  const found = ['package.json', 'node_modules'].map((name) => join(folder, name)).filter(existsSync)
  return folder === dirname(folder) ? found : [...found, ...nodePackages(folder)]
}

/** The virtual environment that a program is installed in, with its interpreter, or the installation of an interpreter itself. */
function pythonFiles(program: string): string[] {
  const prefix = dirname(dirname(program))
  if (!existsSync(join(prefix, 'pyvenv.cfg'))) return installation(program)
  const interpreter = join(prefix, 'bin/python')
  return [...partsOf(prefix), ...(existsSync(interpreter) ? linksOf(interpreter).flatMap(installation) : [])]
}

function installation(program: string): string[] {
  const prefix = dirname(dirname(program))
  const library = join(prefix, 'lib')
  const isPython =
    basename(program).startsWith('python') && existsSync(library) && readdirSync(library).some((name) => /^python3/.test(name))
  return isPython ? partsOf(prefix) : []
}

const partsOf = (prefix: string) => ['bin', 'lib', 'lib64', 'pyvenv.cfg'].map((name) => join(prefix, name)).filter(existsSync)

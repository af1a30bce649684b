import { existsSync } from 'node:fs'
import { basename, dirname, join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

export interface TypedFrom {
  readonly env: NodeJS.ProcessEnv
  readonly cwd: string
  readonly platform: NodeJS.Platform
  /** Launcher of the checkout whose sources run; `null` for an installed package. */
  readonly launcher: string | null
}

const here: TypedFrom = {
  env: process.env,
  cwd: process.cwd(),
  platform: process.platform,
  launcher: import.meta.url.endsWith('.ts') ? fileURLToPath(new URL('../../../scripts/launch.mjs', import.meta.url)) : null,
}

/** The text to type for a command with these arguments, started in the same way as this one: by an npm script, `npx` or the launcher. */
export function typedCommand(args: readonly string[], from: TypedFrom = here): string {
  const words = (args: readonly string[]) => args.map((word) => quoted(word, from.platform)).join(' ')
  const { npm_lifecycle_event: name, npm_lifecycle_script: script = '' } = from.env
  const scriptArguments = argumentsOfScript(script)
  if (name !== undefined && name !== 'npx' && scriptArguments?.every((word, index) => args[index] === word)) {
    const rest = args.slice(scriptArguments.length)
    return `${name === 'start' ? 'npm start' : `npm run ${name}`}${rest.length > 0 ? ` -- ${words(rest)}` : ''}`
  }
  return `${program(from)} ${words(args)}`
}

/** The arguments of `train` that resume `run`, the folder of a run that has begun; unchanged if there is none. */
export function resumeArguments(args: readonly string[], run: string | null, startsAnew: boolean): readonly string[] {
  if (run === null) return args
  const rest = args.filter((arg) => arg !== '--new')
  const isNamed = rest.some((arg) => arg === '--resume' || arg.startsWith('--resume='))
  return startsAnew && !isNamed ? [...rest, '--resume', basename(run)] : rest
}

/** A path as the user can type it in the folder of the command. */
export function typedPath(path: string, { env, cwd }: Pick<TypedFrom, 'env' | 'cwd'> = here): string {
  const typedIn = env['INIT_CWD'] ?? cwd
  return resolve(typedIn) === resolve(cwd) ? relative(cwd, resolve(cwd, path)) || '.' : resolve(cwd, path)
}

/** The plain words among the arguments with which a script of package.json calls this program; `null` if it calls another program. */
function argumentsOfScript(script: string): string[] | null {
  const [, command, launched = ''] = /launch\.mjs["']? (start|cli)\b(.*)$/.exec(script) ?? []
  const split = (text: string) => text.split(/\s+/).filter((word) => word !== '')
  if (command === 'start') return ['train', 'examples/periodic-table', ...split(launched)]
  if (command === 'cli') return split(launched)
  const installed = /(?:^|[\s/\\])aworld-train(?:\.cmd)?["']?(\s.*)?$/.exec(script)
  return installed ? split(installed[1] ?? '') : null
}

/** The program to type: `npx` if npm has linked the package here or in a folder above, or else the launcher of the sources. */
function program({ cwd, platform, launcher }: TypedFrom): string {
  if (launcher === null) return 'npx aworld-train'
  for (let folder = resolve(cwd); ; folder = dirname(folder)) {
    if (existsSync(join(folder, 'node_modules', '.bin', 'aworld-train'))) return 'npx aworld-train'
    if (folder === dirname(folder)) break
  }
  return `node ${quoted(relative(cwd, launcher), platform)} cli`
}

function quoted(word: string, platform: NodeJS.Platform): string {
  if (platform === 'win32') return /^[\w@+=:,./\\-]+$/.test(word) ? word : `"${word.replaceAll('"', '\\"')}"`
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`
}

import { fileURLToPath } from 'node:url'
import { mounted } from '../bubblewrap/mounted.ts'
import { packageFolders, packageOf } from './package-folders.ts'

const fromSource = import.meta.url.endsWith('.ts')
const child = fileURLToPath(new URL(fromSource ? './parser-child.ts' : './parser-child.js', import.meta.url))

/** Arguments of Node for the process of a parse. */
export interface ParserCommandOptions {
  /** What it may read. */
  readonly readable: readonly string[]
  readonly heapMb: number
  /** The URL of the parser. */
  readonly module: string
}

/** A program and its arguments. */
export type ParserCommand = (options: ParserCommandOptions) => readonly [string, ...string[]]

/** Files and folders that a process needs for a parser: the parser's package with all below it, and the program of the process. */
export function readableFor(module: URL): string[] {
  return [...packageFolders(packageOf(fileURLToPath(module))), child, `${packageOf(child)}/package.json`]
}

/** Node with no permission but to read. It has no word on the network, which its program closes itself. */
export const nodeCommand: ParserCommand = ({ readable, heapMb, module }) => [
  process.execPath,
  '--permission',
  ...readable.map((path) => `--allow-fs-read=${path}`),
  ...(fromSource ? ['--conditions=@aworld-train/source'] : []),
  `--max-old-space-size=${heapMb}`,
  child,
  module,
]

const jailedNode = '/opt/node'

/** The same in namespaces of its own: no network, no process, and no file but those it may read. It reads a filter of system calls from descriptor 3. */
export const bubblewrapCommand: ParserCommand = (options) => {
  const [, ...nodeArguments] = nodeCommand(options)
  return [
    'bwrap',
    ...['--unshare-all', '--disable-userns', '--unshare-user', '--uid', '65534', '--gid', '65534', '--hostname', 'parser'],
    ...['--die-with-parent', '--new-session', '--cap-drop', 'ALL', '--clearenv', '--seccomp', '3'],
    ...['/usr/lib', '/usr/lib64', '/lib', '/lib64'].flatMap(mounted),
    ...['--ro-bind', process.execPath, jailedNode, '--proc', '/proc', '--dev', '/dev', '--chdir', '/'],
    ...options.readable.flatMap(mounted),
    ...['--', jailedNode, ...nodeArguments],
  ]
}

import { fileURLToPath } from 'node:url'
import { confinement, devices, mounted, ownNamespaces } from '../bubblewrap/arguments.ts'
import { withLifeline } from '../bubblewrap/lifeline.ts'
import { packageFolders, packageOf } from './package-folders.ts'

const fromSource = import.meta.url.endsWith('.ts')
const child = fileURLToPath(new URL(fromSource ? './parser-child.ts' : './parser-child.js', import.meta.url))

/** Arguments of Node for the process of a parse. */
export interface ParserCommandOptions {
  /** Paths that it may read. */
  readonly readable: readonly string[]
  readonly heapMb: number
  /** The URL of the parser. */
  readonly module: string
  /** Whether it may load native addons and start threads. */
  readonly isNative: boolean
}

/** A program and its arguments. */
export type ParserCommand = (options: ParserCommandOptions) => readonly [string, ...string[]]

/**
 * Files and folders that a process needs for a parser: the parser's package with all below it, and the program of the process. Packages
 * with native addons are optional dependencies, which others need not see.
 */
export function readableFor(module: URL, isNative: boolean): string[] {
  return [...packageFolders(packageOf(fileURLToPath(module)), isNative), child, `${packageOf(child)}/package.json`]
}

/** Node with only the permission to read. Its permissions do not cover the network, which its program closes itself. */
export const nodeCommand: ParserCommand = ({ readable, heapMb, module, isNative }) => [
  process.execPath,
  '--permission',
  ...(isNative ? ['--allow-addons', '--allow-worker'] : []),
  ...readable.map((path) => `--allow-fs-read=${path}`),
  `--max-old-space-size=${heapMb}`,
  child,
  module,
]

const jailedNode = '/opt/node'
const jailedBash = '/opt/bash'

/** Descriptor from which a jailed parser reads a filter of system calls. */
export const filterFd = 3
/** Descriptor with whose end it ends. */
export const lifelineFd = 4

/** The same in namespaces of its own: no network, no other process, and no file but those that it may read. */
export const bubblewrapCommand: ParserCommand = (options) => {
  const [, ...nodeArguments] = nodeCommand(options)
  const jailArguments = [
    ownNamespaces(65_534),
    confinement(filterFd),
    ['--clearenv'],
    ['/usr/lib', '/usr/lib64', '/lib', '/lib64'].flatMap(mounted),
    ['--ro-bind', '/bin/bash', jailedBash],
    ['--ro-bind', process.execPath, jailedNode],
    ['--proc', '/proc'],
    devices,
    ['--chdir', '/'],
    options.readable.flatMap(mounted),
    ['--remount-ro', '/'],
    ['--', jailedBash, ...withLifeline(lifelineFd, [jailedNode, ...nodeArguments])],
  ].flat()
  return ['bwrap', ...jailArguments]
}

import { tmpdir } from 'node:os'
import { z } from 'zod'
import { createAnsweringPython } from '../../shared/process/answering-python.ts'
import { withBridge } from '../../shared/python-package.ts'
import type { VerlKey } from './verl-key.ts'
import { formatKey, isGroup } from './verl-keys.ts'

const Tree = z.record(z.string(), z.unknown())
type Tree = Readonly<Record<string, unknown>>

const Errors = z.array(z.object({ key: z.string().optional(), message: z.string() }))
const Read = z.object({ version: z.string(), errors: Errors, defaults: Tree, resolved: Tree, parsed: z.array(z.unknown()), values: Tree })
const Composed = z.object({ version: z.string(), errors: Errors, tree: Tree.nullable() })

/** The configuration of the installed verl: its own tree, and Hydra's composition of keys. */
export interface InstalledVerl {
  readonly version: string
  /** Its own tree as Hydra composes it, with references. */
  readonly defaults: Tree
  /** The same with references replaced. */
  readonly resolved: Tree
  /** Composes the tree of a training with these keys. Throws CONFIG_INVALID if Python gives no answer. */
  compose(keys: readonly VerlKey[], options?: ComposeOptions): Promise<Composition>
}

export interface ComposeOptions {
  /** Has verl's own dataclasses and `validate_config` check it too. That imports torch and takes 10 s instead of 1. */
  readonly validate?: boolean | undefined
  /** Variables of verl's processes, which references may name. */
  readonly environment?: Readonly<Record<string, string>> | undefined
  readonly signal?: AbortSignal | undefined
}

export interface Composition {
  /** The tree with references replaced; `null` if the keys cannot be composed. */
  readonly tree: Tree | null
  /** Whole sentences. */
  readonly errors: readonly string[]
}

/** A user's keys as they were written. */
export interface WrittenKeys {
  readonly keys: Tree
  /** Overrides, whose values Hydra reads. */
  readonly texts: readonly string[]
  /** Overrides that choose files of Hydra. */
  readonly groups: readonly string[]
}

export interface ReadKeys {
  readonly verl: InstalledVerl
  /** Values of the texts, in their order. */
  readonly parsed: readonly unknown[]
  /** Values of all keys with their references replaced. */
  readonly values: Tree
  /** Whole sentences. */
  readonly errors: readonly string[]
}

export interface PythonOptions {
  /** Interpreter that has verl. */
  readonly python: string
  readonly env?: NodeJS.ProcessEnv | undefined
  readonly timeoutMs?: number | undefined
  readonly signal?: AbortSignal | undefined
}

/** Has the installed verl read keys. Throws CONFIG_INVALID if Python gives no answer. */
export async function readWithVerl(written: WrittenKeys, { signal, env = process.env, ...options }: PythonOptions): Promise<ReadKeys> {
  const composer = createAnsweringPython({
    ...options,
    args: ['-m', 'aworld_train_bridge.verl.resolve_config'],
    env: { ...withBridge(env), VERL_USE_EXTERNAL_MODULES: '' },
    cwd: tmpdir(),
    task: "compose verl's configuration",
    trainer: 'verl',
  })
  const { version, defaults, resolved, parsed, values, errors } = await composer.ask(written, Read, signal)
  const verl: InstalledVerl = {
    version,
    defaults,
    resolved,
    async compose(keys, { validate = false, environment = {}, signal } = {}) {
      const texts = (those: readonly VerlKey[]) => those.map((key) => formatKey(defaults, key))
      const groups = texts(keys.filter(({ path }) => isGroup(path)))
      const overrides = texts(keys.filter(({ path }) => !isGroup(path)))
      const { tree, errors } = await composer.ask({ groups, overrides, environment, validate }, Composed, signal)
      // torch has been imported, and no question follows a validation.
      if (validate) composer.close()
      return { tree, errors: errors.map((error) => toSentence({ ...error, key: refusedKey(error, keys) ?? error.key })) }
    },
  }
  return { verl, parsed, values, errors: errors.map(toSentence) }
}

/** The key that has no field in a dataclass of verl, if the user named it. */
function refusedKey({ key, message }: z.infer<typeof Errors>[number], keys: readonly VerlKey[]): string | undefined {
  const field = /unexpected keyword argument '(\w+)'/.exec(message)?.[1]
  return keys.find(({ path }) => key !== undefined && path.startsWith(`${key}.`) && path.endsWith(`.${field}`))?.path
}

const toSentence = ({ key, message }: z.infer<typeof Errors>[number]) => (key ? `${key}: ${message}` : message)

import { execFile } from 'node:child_process'
import { tmpdir } from 'node:os'
import { promisify } from 'node:util'
import { TrainError } from '@aworld-train/protocol'
import { bridgeDirectory } from '@aworld-train/python-bridge'
import { z } from 'zod'
import type { VerlKey } from './verl-key.ts'
import { formatKey } from './verl-keys.ts'

const Tree = z.record(z.string(), z.unknown())
type Tree = Readonly<Record<string, unknown>>

const Errors = z.array(z.object({ key: z.string().optional(), message: z.string() }))
const Failed = z.object({ version: z.string().nullable(), errors: Errors.min(1) })
const Read = z.object({ version: z.string(), errors: Errors, defaults: Tree, resolved: Tree, parsed: z.array(z.unknown()), values: Tree })
const Composed = z.object({ version: z.string(), errors: Errors, tree: Tree.nullable() })

/** The configuration of the verl that is installed: what it has by itself, and what its Hydra makes of keys. */
export interface InstalledVerl {
  readonly version: string
  /** Its own tree as Hydra composes it, references kept. */
  readonly defaults: Tree
  /** The same with references replaced. */
  readonly resolved: Tree
  /** The tree of a training with these keys. Throws CONFIG_INVALID where Python gives no answer. */
  compose(keys: readonly VerlKey[], options?: ComposeOptions): Promise<Composition>
}

export interface ComposeOptions {
  /** Has verl's own dataclasses and `validate_config` look at it too, which imports torch: 10 s instead of 1. */
  readonly validate?: boolean | undefined
  /** Variables of verl's processes, which references may name. */
  readonly environment?: Readonly<Record<string, string>> | undefined
  readonly signal?: AbortSignal | undefined
}

export interface Composition {
  /** References replaced; `null` where the keys cannot be composed. */
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
  readonly environment: Readonly<Record<string, string>>
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

/** Has the installed verl read keys. Throws CONFIG_INVALID where Python gives no answer. */
export async function readWithVerl(written: WrittenKeys, options: PythonOptions): Promise<ReadKeys> {
  const { environment, ...request } = written
  const answer = await askPython(request, Read, environment, options)
  const { version, defaults, resolved, parsed, values, errors } = answer
  const verl: InstalledVerl = {
    version,
    defaults,
    resolved,
    async compose(keys, { validate = false, environment = {}, signal } = {}) {
      const overrides = keys.map((key) => formatKey(defaults, key))
      const { tree, errors } = await askPython({ overrides, validate }, Composed, environment, { ...options, signal })
      return { tree, errors: errors.map(toSentence) }
    },
  }
  return { verl, parsed, values, errors: errors.map(toSentence) }
}

const toSentence = ({ key, message }: z.infer<typeof Errors>[number]) => (key ? `${key}: ${message}` : message)

async function askPython<Answer>(
  request: unknown,
  schema: z.ZodType<Answer>,
  environment: Readonly<Record<string, string>>,
  { python, env = process.env, timeoutMs = 180_000, signal }: PythonOptions,
): Promise<Answer> {
  let stdout: string
  try {
    const result = await promisify(execFile)(python, ['-m', 'aworld_train_bridge.verl.resolve_config', JSON.stringify([request])], {
      cwd: tmpdir(),
      env: {
        ...env,
        ...environment,
        PYTHONPATH: [bridgeDirectory, env['PYTHONPATH']].filter(Boolean).join(':'),
        VERL_USE_EXTERNAL_MODULES: '',
      },
      maxBuffer: 64 * 1024 * 1024,
      timeout: timeoutMs,
      killSignal: 'SIGKILL',
      ...(signal ? { signal } : {}),
    })
    stdout = result.stdout
  } catch (cause) {
    signal?.throwIfAborted()
    const { stderr, killed, message } = cause as { stderr?: string; killed?: boolean; message: string }
    throw unanswered(python, killed ? `it took longer than ${timeoutMs / 1000} s` : (stderr?.trim().split('\n').at(-1) ?? message), cause)
  }
  const [answer] = JSON.parse(stdout) as [unknown]
  const parsed = schema.safeParse(answer)
  if (parsed.success) return parsed.data
  const failed = Failed.safeParse(answer)
  throw unanswered(python, failed.success ? failed.data.errors.map(toSentence).join(' ') : parsed.error.message, parsed.error)
}

function unanswered(python: string, why: string, cause: unknown): TrainError {
  return new TrainError(
    'CONFIG_INVALID',
    `${python} could not compose verl's configuration: ${why}; check that Python with "aworld-train doctor --engine verl".`,
    { cause },
  )
}

import { execFile } from 'node:child_process'
import { tmpdir } from 'node:os'
import { promisify } from 'node:util'
import { TrainError } from '@aworld-train/protocol'
import { bridgeDirectory } from '@aworld-train/python-bridge'
import { z } from 'zod'
import type { VerlSchema } from './verl-config.ts'

const tree = z.record(z.string(), z.unknown())

const Answer = z.object({
  version: z.string().nullable(),
  tree: tree.nullable(),
  errors: z.array(z.object({ override: z.string().optional(), key: z.string().optional(), message: z.string() })),
  missing: z.array(z.string()).default([]),
  defaults: tree.optional(),
  extra: z.array(z.string()).default([]),
})

export interface ResolveRequest {
  readonly overrides?: readonly string[]
  /** Ask verl's own dataclasses and `validate_config` too, which imports torch: 15 s instead of 2. */
  readonly validate?: boolean
  /** Read the defaults and extra keys of this verl, which imports torch as well. */
  readonly schema?: boolean
}

export interface PythonOptions {
  /** Interpreter that has verl. */
  readonly python: string
  readonly env?: NodeJS.ProcessEnv
  readonly timeoutMs?: number
  readonly signal?: AbortSignal
}

export interface ResolveWithPythonOptions extends ResolveRequest, PythonOptions {}

export interface ResolvedByPython {
  readonly version: string | null
  /** As Hydra and OmegaConf compose and resolve it; `null` where there are errors of composition. */
  readonly tree: Readonly<Record<string, unknown>> | null
  /** Whole sentences. */
  readonly errors: readonly string[]
  readonly schema: VerlSchema | null
}

/** The installed verl's own view of a configuration. Throws CONFIG_INVALID where Python gives no answer. */
export async function resolveWithPython(options: ResolveWithPythonOptions): Promise<ResolvedByPython> {
  const [resolved] = await resolveEachWithPython([options], options)
  return resolved!
}

/** As `resolveWithPython`, for several configurations in one process; answers stand in their order. */
export async function resolveEachWithPython(
  requests: readonly ResolveRequest[],
  { python, env = process.env, timeoutMs = 180_000, signal }: PythonOptions,
): Promise<ResolvedByPython[]> {
  const request = JSON.stringify(requests.map(({ overrides = [], validate = false, schema = false }) => ({ overrides, validate, schema })))
  let stdout: string
  try {
    const result = await promisify(execFile)(python, ['-m', 'aworld_train_bridge.verl.resolve_config', request], {
      cwd: tmpdir(),
      env: { ...env, PYTHONPATH: [bridgeDirectory, env['PYTHONPATH']].filter(Boolean).join(':'), VERL_USE_EXTERNAL_MODULES: '' },
      maxBuffer: 64 * 1024 * 1024,
      timeout: timeoutMs,
      killSignal: 'SIGKILL',
      ...(signal ? { signal } : {}),
    })
    stdout = result.stdout
  } catch (cause) {
    signal?.throwIfAborted()
    const { stderr, killed, message } = cause as { stderr?: string; killed?: boolean; message: string }
    const why = killed ? `it took longer than ${timeoutMs / 1000} s` : (stderr?.trim().split('\n').at(-1) ?? message)
    throw new TrainError(
      'CONFIG_INVALID',
      `${python} could not compose verl's configuration: ${why}; check that Python with "aworld-train doctor --engine verl".`,
      { cause },
    )
  }
  return z.array(Answer).parse(JSON.parse(stdout)).map(toResolved)
}

function toResolved(answer: z.infer<typeof Answer>): ResolvedByPython {
  return {
    version: answer.version,
    tree: answer.tree,
    errors: answer.errors.map(({ override, key, message }) =>
      override ? `${override}: ${message}` : key ? `${key}: ${message}` : message,
    ),
    schema: answer.defaults && answer.version ? { version: answer.version, defaults: answer.defaults, extra: answer.extra } : null,
  }
}

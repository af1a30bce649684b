import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { errorMessage } from '@aworld-train/protocol'
import { runProcess, withBridge } from '@aworld-train/python-bridge'
import { z } from 'zod'
import { firstGpu, swiftVariables } from '../run/swift-variables.ts'
import type { SwiftFields } from './swift-config.ts'

const answerSchema = z.object({
  version: z.string(),
  problems: z.array(z.object({ key: z.string().nullable(), message: z.string() })),
  notes: z.array(z.string()),
  exact: z.boolean(),
})

export interface SwiftAnswer {
  readonly version: string
  readonly problems: readonly string[]
  readonly notes: readonly string[]
  /** Whether sampler and trainer round alike: one model in float32. */
  readonly exact: boolean
}

/** Has the installed classes read a configuration, which takes ms-swift's imports' time. Where Python gives no answer, that is its problem. */
export async function askSwift(
  /** Without a `model`, arguments are only looked up by their names. */
  question: {
    readonly configuration: SwiftFields
    readonly model: string | null /** Keys of ours, which an unknown key may be meant for. */
    readonly names?: readonly string[] | undefined
  },
  { python, signal }: { readonly python: string; readonly signal?: AbortSignal | undefined },
): Promise<SwiftAnswer> {
  const folder = await mkdtemp(join(tmpdir(), 'aworld-train-swift-'))
  try {
    const file = join(folder, 'question.json')
    await writeFile(file, JSON.stringify(question))
    const { code, stdout, stderr } = await runProcess(python, ['-W', 'ignore', '-m', 'aworld_train_bridge.swift', file, '--check'], {
      env: {
        ...withBridge(process.env),
        ...swiftVariables,
        CUDA_VISIBLE_DEVICES: firstGpu(process.env),
        PYTHONDONTWRITEBYTECODE: '1',
      },
      signal,
      timeoutMs: 300_000,
    }).catch((error: unknown) => {
      signal?.throwIfAborted()
      return { code: null, stdout: '', stderr: errorMessage(error) }
    })
    const line = stdout.trim().split('\n').at(-1) ?? ''
    if (code === 0 && line.startsWith('{')) {
      const { problems, ...answer } = answerSchema.parse(JSON.parse(line))
      return { ...answer, problems: problems.map(({ message }) => message) }
    }
    const reason = stderr.trim().split('\n').slice(-3).join('\n')
    return {
      version: '',
      problems: [`${python} could not read the configuration with ms-swift: ${reason || `it ended with ${code}`}`],
      notes: [],
      exact: false,
    }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { errorMessage } from '@aworld-train/protocol'
import { runProcess, withBridge } from '@aworld-train/python-bridge'
import type { KeyTree } from '@aworld-train/training'
import { z } from 'zod'

const answerSchema = z.object({
  version: z.string(),
  problems: z.array(z.object({ key: z.string().nullable(), message: z.string() })),
  notes: z.array(z.string()),
  exact: z.boolean(),
})

export interface ArealAnswer {
  readonly version: string
  readonly problems: readonly string[]
  readonly notes: readonly string[]
  /** Whether sampler and trainer round alike: one model in float32. */
  readonly exact: boolean
}

/** Has AReaL's own classes read a configuration, which takes the time of its imports. Where Python gives no answer, that is its problem. */
export async function askAreal(
  question: { readonly configuration: KeyTree },
  { python, signal }: { readonly python: string; readonly signal?: AbortSignal | undefined },
): Promise<ArealAnswer> {
  const folder = await mkdtemp(join(tmpdir(), 'aworld-train-areal-'))
  try {
    const file = join(folder, 'question.json')
    await writeFile(file, JSON.stringify(question))
    const { code, stdout, stderr } = await runProcess(python, ['-W', 'ignore', '-m', 'aworld_train_bridge.areal', file, '--check'], {
      env: { ...withBridge(process.env), PYTHONDONTWRITEBYTECODE: '1' },
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
    const reason = stderr.trim().split('\n').slice(-3).join('\n') || `it ended with ${code}`
    return { version: '', problems: [`${python} could not read the configuration with AReaL: ${reason}`], notes: [], exact: false }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { errorMessage } from '@aworld-train/core'
import { z } from 'zod'
import { runProcess } from '../environment/run-process.ts'
import { withBridge } from '../python-package.ts'

const answerSchema = z.object({
  version: z.string(),
  problems: z.array(z.object({ key: z.string().nullable(), message: z.string() })),
  notes: z.array(z.string()),
  exact: z.boolean(),
})

/** The verdict of a framework's installed classes on a configuration. */
export interface ConfigurationAnswer {
  readonly version: string
  readonly problems: readonly string[]
  readonly notes: readonly string[]
  /** Whether sampler and trainer round alike, because they are one model in float32. */
  readonly exact: boolean
}

export interface AskConfigurationOptions {
  readonly python: string
  /** The bridge's module of the framework, which answers to `FILE --check`. */
  readonly module: string
  /** The framework's name, for people. */
  readonly title: string
  /** Variables besides those of this process. */
  readonly variables?: Readonly<Record<string, string>> | undefined
  readonly signal?: AbortSignal | undefined
}

/**
 * Lets a framework read a configuration, which takes the time of its imports. If Python gives no answer, that is
 * a problem of the configuration.
 */
export async function askConfiguration(
  question: object,
  { python, module, title, variables, signal }: AskConfigurationOptions,
): Promise<ConfigurationAnswer> {
  const folder = await mkdtemp(join(tmpdir(), 'aworld-train-question-'))
  try {
    const file = join(folder, 'question.json')
    await writeFile(file, JSON.stringify(question))
    const { code, stdout, stderr } = await runProcess(python, ['-W', 'ignore', '-m', module, file, '--check'], {
      env: { ...withBridge(process.env), ...variables },
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
    return { version: '', problems: [`${python} could not read the configuration with ${title}: ${reason}`], notes: [], exact: false }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

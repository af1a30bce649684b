import { TrainError } from '@aworld-train/core'
import { z } from 'zod'
import { withBridge } from '../python-package.ts'
import { createAnsweringPython } from './answering-python.ts'

const answerSchema = z.object({
  version: z.string(),
  problems: z.array(z.object({ message: z.string() }).transform(({ message }) => message)),
  notes: z.array(z.string()),
  exact: z.boolean(),
})

/** The verdict of a framework's installed classes on a configuration. `exact`: sampler and trainer round alike. */
export type ConfigurationAnswer = Readonly<z.output<typeof answerSchema>>

/** The installed classes of a framework, which read configurations. */
export interface ConfigurationReader {
  /** Reads a configuration. A missing answer of Python is one of its problems. */
  read(question: object, signal?: AbortSignal): Promise<ConfigurationAnswer>
  /** Ends its process. */
  close(): void
}

export interface ConfigurationReaderOptions {
  readonly python: string
  /** The framework's name in commands, and for people. */
  readonly name: string
  readonly title: string
  /** Variables besides those of this process. */
  readonly variables?: Readonly<Record<string, string>> | undefined
}

/**
 * Creates a reader. It starts Python with its first question, which takes the time of the framework's imports, and gives the same answer to
 * the same question.
 */
export function createConfigurationReader({ python, name, title, variables }: ConfigurationReaderOptions): ConfigurationReader {
  const answers = new Map<string, ConfigurationAnswer>()
  const { ask, close } = createAnsweringPython({
    python,
    args: ['-W', 'ignore', '-m', `aworld_train_bridge.${name}`, '--check'],
    env: { ...withBridge(process.env), ...variables },
    task: `read the configuration with ${title}`,
    trainer: name,
  })
  return {
    async read(question, signal) {
      const key = JSON.stringify(question)
      try {
        const answer = answers.get(key) ?? (await ask(question, answerSchema, signal))
        answers.set(key, answer)
        return answer
      } catch (error) {
        signal?.throwIfAborted()
        if (!(error instanceof TrainError)) throw error
        return { version: '', problems: [error.message], notes: [], exact: false }
      }
    },
    close,
  }
}

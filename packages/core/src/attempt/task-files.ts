import { readFile } from 'node:fs/promises'
import { basename, resolve } from 'node:path'
import { TrainError } from '../protocol/errors.ts'
import type { Message } from '../protocol/message.ts'
import type { AgentTask, TrainingTask } from '../protocol/task.ts'

/** A task's files by their names in the workspace: the last parts of their paths, which must differ. */
export function filesByName(files: readonly string[], fail: (what: string) => never): Map<string, string> {
  const byName = new Map<string, string>()
  for (const path of files) {
    const name = basename(path)
    if (byName.has(name)) fail(`its files ${byName.get(name)} and ${path} have one name; rename one of them`)
    byName.set(name, path)
  }
  return byName
}

/** A task as its agent and tools see it. Its files have their names in the workspace, and the end of the prompt lists these. */
export function toAgentTask({ setup: _, ...task }: Omit<TrainingTask, 'extraInfo'>): AgentTask {
  if (!task.files || task.files.length === 0) return task
  const files = task.files.map((path) => basename(path))
  const line = `Files in the working directory: ${files.map(written).join(', ')}`
  return { ...task, files, input: withLine(task.input, line) }
}

/** Reads a file of a task by its name. `files` are absolute paths or paths below `baseDirectory`. */
export async function readTaskFile(
  { id, files = [] }: Pick<TrainingTask, 'id' | 'files'>,
  baseDirectory: string,
  name: string,
): Promise<Buffer> {
  const fail = (what: string, cause?: unknown): never => {
    const reason = cause instanceof Error ? `: ${cause.message}` : ''
    throw new TrainError('ENVIRONMENT_START_FAILED', `The file "${name}" of task "${id}" cannot be read: ${what}${reason}.`, { cause })
  }
  const paths = filesByName(files, fail)
  const path = paths.get(name)
  if (path === undefined) return fail(paths.size === 0 ? 'the task has no files' : `its files are ${[...paths.keys()].join(', ')}`)
  return await readFile(resolve(baseDirectory, path)).catch((cause: unknown) => fail('this machine does not have it', cause))
}

/** Quotes a name if a sentence with it could be read differently. */
const written = (name: string): string => (/^[\p{L}\p{N}._()+-]+$/u.test(name) ? name : JSON.stringify(name))

/** The input with a paragraph added to the user's last message. */
function withLine(input: TrainingTask['input'], line: string): TrainingTask['input'] {
  const add = (text: string | null) => `${text ?? ''}\n\n${line}`.trimStart()
  if (typeof input === 'string') return add(input)
  const at = input.findLastIndex(({ role }) => role === 'user')
  if (at < 0) return [...input, { role: 'user', content: line }]
  return input.map((message, index): Message => (index === at ? { ...message, content: add(message.content) } : message))
}

import type { ChatModel } from '@aworld-train/chat'
import { type Message, TrainError, type TrainingTask, toAgentTask } from '@aworld-train/core'
import type { LoadedDataset } from '../dataset/dataset-types.ts'

/** The model's rendering and context, which decide whether a prompt fits. */
export interface PromptModel {
  readonly chat: Pick<ChatModel, 'createConversation'>
  /** Context length in tokens. */
  readonly contextLength: number
}

export interface LongPrompts {
  /** Tasks whose prompt is too long, the longest first. */
  readonly tasks: readonly TrainingTask[]
  /** Length of the longest prompt. */
  readonly tokens: number
  /** POLICY_CONTEXT_OVERFLOW with the number of such prompts, the longest of them, and the remedy. */
  readonly error: TrainError
}

/**
 * Finds tasks whose prompt alone fills the model's context, so that an agent that sends it whole gets no answer; `null` if there are none.
 * Instructions and tools that an agent adds are not counted.
 */
export function findLongPrompts(tasks: readonly TrainingTask[], { chat, contextLength }: PromptModel): LongPrompts | null {
  const tokensOf = (messages: readonly Message[]) => chat.createConversation().prepare({ messages, tools: [] }).promptTokenIds.length
  const frame = tokensOf([{ role: 'user', content: 'x' }])
  const long = tasks
    .flatMap((task) => {
      const { input } = toAgentTask(task)
      const messages: readonly Message[] = typeof input === 'string' ? [{ role: 'user', content: input }] : input
      // A token has at least one byte, so most prompts fit by their length in bytes and need not be encoded.
      if (Buffer.byteLength(JSON.stringify(messages)) + frame < contextLength) return []
      const tokens = tokensOf(messages)
      return tokens < contextLength ? [] : [{ task, tokens }]
    })
    .sort((a, b) => b.tokens - a.tokens)
  const [longest] = long
  if (!longest) return null
  const details = { prompts: long.length, longest: longest.task.id, tokens: longest.tokens, contextLength }
  return {
    tasks: long.map(({ task }) => task),
    tokens: longest.tokens,
    error: new TrainError(
      'POLICY_CONTEXT_OVERFLOW',
      `${long.length} of ${tasks.length} prompts ${long.length === 1 ? 'leaves' : 'leave'} the model no room to answer: that of task "${longest.task.id}" has ${longest.tokens} tokens, and the context of the model ${contextLength}. Shorten or leave out these prompts, or use a model with a longer context.`,
      { details },
    ),
  }
}

type Tasks = Pick<LoadedDataset, 'tasks'>

/** Warnings about the prompts of all datasets. Throws the error if no prompt of the first dataset fits. */
export function longPromptWarnings([first, ...others]: readonly [Tasks, ...(Tasks | null)[]], model: PromptModel): string[] {
  const long = findLongPrompts(
    [first, ...others].flatMap((dataset) => dataset?.tasks ?? []),
    model,
  )
  if (!long) return []
  const tooLong = new Set(long.tasks)
  if (first.tasks.every((task) => tooLong.has(task))) throw long.error
  return [long.error.message]
}

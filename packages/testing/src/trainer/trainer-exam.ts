import type { AgentTask } from '@aworld-train/core'

/** The part of a rollout that an agent of the exam uses. The context of AWorld Train has it. */
export interface ExamContext {
  /** Key of the rollout. Its last part numbers the samples of a task. */
  readonly rollout: string
  readonly baseUrl: string
  readonly apiKey: string
  readonly model: string
  readonly signal: AbortSignal
}

/** The exam's training, equal for every trainer: two tasks, four episodes of each in a step. */
export interface TrainerExam {
  agent(task: AgentTask, context: ExamContext): Promise<string>
  readonly trainDataset: readonly ExamTask[]
  /** The reward of an answer, which is a number as text. */
  rewardFunc(dataSource: string, answer: string): number
  readonly promptsPerStep: number
  readonly samplesPerPrompt: number
}

export interface ExamTask {
  readonly id: string
  readonly prompt: string
  readonly answer: string
}

/** Fixed rewards by task and sample. Every group has a variance, and no two groups or halves of groups have equal means. */
const examRewards: ExamRewards = { first: [0, 1, 0.25, 0.5], second: [1, 0.2, 0, 0] }

/** Groups in which one sample differs from the others, which are equal. */
export const oneOddRewards: ExamRewards = { first: [1, 1, 1, 0], second: [0, 0, 0, 1] }

type ExamRewards = Readonly<Record<string, readonly number[]>>

const samplesPerPrompt = 4
/** Tokens within which the last turn ends by itself. An episode that is cut there has no answer, and so another reward. */
const lastTurn = 48
/** Tokens within which no turn ends by itself: the shortest answer of the exam's model is a word, which is a token, and its end. */
export const cutTurn = 1
/** All printable characters as stop texts. The first token of a turn contains one of them, so that the turn has no text. */
const everyCharacter = Array.from({ length: 95 }, (_, index) => String.fromCharCode(32 + index))

/** A rollout's key without its sample. */
export const groupOf = (rollout: string) => rollout.slice(0, rollout.lastIndexOf('/'))

/** The second task's question in the words of one of its samples. */
const otherWords = 'Which has the higher period, tin or argon?'

/** Behaviour of an agent in place of its two turns. */
export type ExamFault = 'throws' | 'hangs' | 'not-a-number'

export interface TrainerExamOptions {
  /** Samples that fail, by task; every rollout if `all` is named. */
  readonly faults?: Readonly<Record<string, Readonly<Record<number, ExamFault>>>> | 'all'
  readonly rewards?: ExamRewards
  /** The first turn of the last sample of the first task has a token and no text. */
  readonly hasEmptyTurn?: boolean
}

/**
 * Two groups of four episodes with two turns each. The second sample of the second task forks after its first turn. The third sample of the
 * first task has its first turn cut. The third of the second asks in other words than its group. Only the sampled tokens differ between
 * steps.
 */
export function createTrainerExam({ faults = {}, rewards = examRewards, hasEmptyTurn = false }: TrainerExamOptions = {}): TrainerExam {
  const firstGroups = new Map<string, string>()
  return {
    async agent(task, { rollout, baseUrl, apiKey, model, signal }) {
      const index = Number(rollout.split('/').at(-1))
      const sample = index % samplesPerPrompt
      // A replacement of a failed rollout continues the numbers of its group, or is in another group, and has no fault.
      const group = groupOf(rollout)
      if (!firstGroups.has(task.id)) firstGroups.set(task.id, group)
      const isFirst = firstGroups.get(task.id) === group
      const fault = faults === 'all' ? 'throws' : isFirst ? faults[task.id]?.[index] : undefined
      if (fault === 'throws') throw new Error('The agent of the exam throws.')
      if (fault === 'hangs') await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
      const ask = async (messages: readonly object[], maxTokens: number, stop: readonly string[] = []) => {
        const response = await fetch(`${baseUrl}/chat/completions`, {
          method: 'POST',
          headers: { 'content-type': 'application/json', authorization: `Bearer ${apiKey}` },
          body: JSON.stringify({ model, messages, max_tokens: maxTokens, ...(stop.length > 0 && { stop }) }),
          signal,
        })
        if (!response.ok) throw new Error(`The policy answered HTTP ${response.status}: ${await response.text()}`)
        const { choices } = (await response.json()) as { choices: readonly { message: object }[] }
        return choices[0]!.message
      }
      const prompt = String(typeof task.input === 'string' ? task.input : task.input.at(-1)?.content)
      const isInOtherWords = task.id === 'second' && sample === 2
      const question = { role: 'user', content: isInOtherWords ? otherWords : prompt }
      const isCut = task.id === 'first' && sample === 2
      const isEmpty = hasEmptyTurn && task.id === 'first' && sample === 3
      const first = [question, await ask([question], isCut ? cutTurn : 12, isEmpty ? everyCharacter : [])]
      await ask([...first, { role: 'user', content: 'Give the answer again.' }], lastTurn)
      if (task.id === 'second' && sample === 1) await ask([...first, { role: 'user', content: 'Give another answer.' }], lastTurn)
      return fault === 'not-a-number' ? 'none' : String(rewards[task.id]![sample])
    },
    trainDataset: [
      { id: 'first', prompt: 'What is the symbol of iron?', answer: 'Fe' },
      { id: 'second', prompt: 'Which has the higher period, argon or tin?', answer: 'tin' },
    ],
    rewardFunc: (_, answer) => Number(answer),
    promptsPerStep: 2,
    samplesPerPrompt,
  }
}

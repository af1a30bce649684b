import { randomUUID } from 'node:crypto'
import { type InvocationRecord, Message, type ToolCallRecord, TrainError, type Usage } from '@aworld-train/core'
import { z } from 'zod'
import { Agent } from './agent.ts'
import { describeValue, type EitherCase, readNamedOptions } from './named-options.ts'
import { Swarm } from './swarm.ts'

interface TaskFields {
  readonly id?: string | undefined
  readonly name?: string | undefined
  /** The question, or the messages to start from. */
  readonly input: string | readonly Message[]
  readonly agent?: Agent | Swarm | undefined
  readonly swarm?: Agent | Swarm | undefined
  /** Seconds for the whole task; 0 or absent means no limit. */
  readonly timeout?: number | undefined
}

export type TaskOptions = EitherCase<TaskFields>

const optionNames = ['id', 'name', 'input', 'agent', 'swarm', 'timeout']
const withoutEffect = ['userId', 'sessionId', 'traceId', 'eventDriven', 'endlessThreshold', 'streamingMode', 'groupId', 'isSubTask']
const refused = {
  tools: 'pass the tools to the agent.',
  toolNames: 'pass the tools to the agent.',
  mcpServersConf: 'pass "mcpConfig" to the agent.',
  hooks: 'pass the hooks to the agent.',
  conf: 'set "maxTurns" of the agent, or "timeout" of the task.',
  images: 'put the text of the images into the input.',
}

/** An input with the agent or swarm that works on it. A `TrainingTask`, which a dataset holds, has no agent. */
export class Task {
  readonly id: string
  readonly name: string | undefined
  readonly input: string | readonly Message[]
  readonly source: Agent | Swarm
  readonly timeoutSeconds: number | undefined

  constructor(input: TaskOptions) {
    const { options } = readNamedOptions(input, { owner: 'Task', optionNames, withoutEffect, refused })
    this.id = options['id'] === undefined ? randomUUID() : String(options['id'])
    this.name = options['name'] === undefined ? undefined : String(options['name'])
    this.input = readInput(options['input'])
    this.source = readSource(options['agent'], options['swarm'])
    this.timeoutSeconds = readTimeout(options['timeout'])
  }

  get agent(): Agent | undefined {
    return this.source instanceof Agent ? this.source : undefined
  }

  get swarm(): Swarm | undefined {
    return this.source instanceof Swarm ? this.source : undefined
  }

  /** The same task with another input. */
  withInput(input: string): Task {
    const common = { id: this.id, name: this.name, input, timeout: this.timeoutSeconds }
    return this.source instanceof Agent ? new Task({ ...common, agent: this.source }) : new Task({ ...common, swarm: this.source })
  }
}

export type TaskStatus = 'success' | 'failed' | 'cancelled' | 'timeout'

/** The end of a task. `success` is false if there is no answer; `msg` then says why. */
export interface TaskResponse {
  readonly id: string
  readonly answer: string | null
  readonly success: boolean
  readonly status: TaskStatus
  readonly msg: string
  /** The error behind `msg`, with its code; `null` on success. */
  readonly error: TrainError | null
  readonly usage: Usage
  /** Seconds. */
  readonly timeCost: number
  readonly messages: readonly Message[]
  /** Which agents worked, and what started them. */
  readonly invocations: readonly InvocationRecord[]
  readonly toolCalls: readonly ToolCallRecord[]
}

const Messages = z.array(Message).min(1)

function readInput(value: unknown): string | readonly Message[] {
  if (typeof value === 'string' && value.trim() !== '') return value
  const parsed = Messages.safeParse(value)
  if (parsed.success) return parsed.data
  throw new TrainError('CONFIG_INVALID', `Task: the input is ${describeValue(value)}; pass a question as text, or an array of messages.`)
}

function readSource(agent: unknown, swarm: unknown): Agent | Swarm {
  if (agent !== undefined && swarm !== undefined)
    throw new TrainError('CONFIG_INVALID', 'Task: both "agent" and "swarm" are given; keep one.')
  const source = agent ?? swarm
  if (source instanceof Agent || source instanceof Swarm) return source
  throw new TrainError('AGENT_INVALID', `Task: expected an Agent or a Swarm to work on the input, got ${describeValue(source)}.`)
}

function readTimeout(value: unknown): number | undefined {
  if (value === undefined || value === 0) return undefined
  if (typeof value === 'number' && value > 0 && Number.isFinite(value)) return value
  throw new TrainError('CONFIG_INVALID', `Task: "timeout" is ${describeValue(value)}; give seconds as a positive number.`)
}

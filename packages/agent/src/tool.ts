import {
  type AttemptContext,
  type AttemptState,
  errorMessage,
  errorSource,
  type ToolDefinition,
  ToolResult,
  TrainError,
} from '@aworld-train/core'
import { z } from 'zod'
import { describeValue } from './named-options.ts'

/** The context of a running tool. Its signal aborts when the attempt ends or a budget is spent. */
export interface ToolContext<State = undefined> extends AttemptContext {
  readonly agent: string
  /** The model's id for this call. */
  readonly callId: string
  /** The state that `state` set up for this attempt. */
  readonly state: State
}

export interface ToolOptions<Parameters extends z.ZodType, State = undefined> {
  /** 1 to 64 letters, digits, `_` or `-`. */
  readonly name: string
  readonly description?: string | undefined
  readonly parameters: Parameters
  /**
   * Runs the tool. A text goes to the model as it is, and so does `{ content, isError }`; anything else goes as JSON. The
   * model sees a throw as an error.
   */
  readonly execute: (args: z.output<Parameters>, context: ToolContext<State>) => unknown
  /** State of each attempt, set up before the first call and torn down at its end. Tools with one definition share it. */
  readonly state?: AttemptState<State> | undefined
}

/** A tool that runs in this process. */
export interface Tool {
  readonly name: string
  readonly definition: ToolDefinition
  readonly state?: AttemptState<unknown> | undefined
  /** Runs the tool. Resolves with `isError` for arguments that do not fit and for a throw; rejects only when the signal aborted. */
  invoke(args: Readonly<Record<string, unknown>>, context: ToolContext<unknown>): Promise<ToolResult>
}

const functionName = /^[a-zA-Z0-9_-]{1,64}$/

/** Returns the definition of a state of each attempt, typed, for several tools or an agent function. */
export function defineState<State>(definition: AttemptState<State>): AttemptState<State> {
  return definition
}

/** Creates a tool for an agent. `parameters` types the arguments of `execute`, and `state` its `context.state`. */
export function tool<Parameters extends z.ZodType, State = undefined>(options: ToolOptions<Parameters, State>): Tool {
  const { name, description, parameters, execute, state } = options
  if (typeof name !== 'string' || !functionName.test(name)) {
    throw new TrainError('CONFIG_INVALID', `tool(): the name is ${describeValue(name)}; use 1 to 64 letters, digits, "_" or "-".`)
  }
  if (!(parameters instanceof z.ZodType)) {
    throw new TrainError(
      'CONFIG_INVALID',
      `Tool "${name}": parameters is ${describeValue(parameters)}; use a Zod 4 schema such as z.object({ … }).`,
    )
  }
  if (typeof execute !== 'function') throw new TrainError('CONFIG_INVALID', `Tool "${name}" has no execute function; add one.`)
  if (state !== undefined && typeof state?.setup !== 'function')
    throw new TrainError('CONFIG_INVALID', `Tool "${name}": state is ${describeValue(state)}; use { setup, teardown }.`)
  return {
    name,
    state: state as AttemptState<unknown> | undefined,
    definition: { name, ...(description ? { description } : {}), parameters: toParametersSchema(name, parameters) },
    async invoke(args, context) {
      const parsed = await parameters.safeParseAsync(args)
      if (!parsed.success) return { content: `Error: invalid arguments for "${name}": ${describeIssues(parsed.error)}`, isError: true }
      try {
        return toToolResult(await execute(parsed.data, context as ToolContext<State>))
      } catch (error) {
        context.signal.throwIfAborted()
        const source = errorSource(error)
        return { content: `Error: ${errorMessage(error)}`, isError: true, ...(source !== undefined && { source }) }
      }
    },
  }
}

function toParametersSchema(name: string, parameters: z.ZodType): Record<string, unknown> {
  const { $schema: _, ...schema } = z.toJSONSchema(parameters, { io: 'input' }) as Record<string, unknown>
  if (schema['type'] !== 'object') {
    throw new TrainError('CONFIG_INVALID', `Tool "${name}": parameters must describe an object; wrap them in z.object({ … }).`)
  }
  return schema
}

function describeIssues(error: z.ZodError): string {
  return error.issues.map((issue) => `${issue.path.length > 0 ? `"${issue.path.join('.')}": ` : ''}${issue.message}`).join('; ')
}

/** Turns a function's return value into the text that the model sees. */
function toToolResult(value: unknown): ToolResult {
  if (typeof value === 'string') return { content: value, isError: false }
  const result = ToolResult.safeParse(value)
  if (result.success) return result.data
  return { content: value === undefined ? '' : (JSON.stringify(value) ?? String(value)), isError: false }
}

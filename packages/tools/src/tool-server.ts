import type { Outward, ParserJail, SandboxTier, Shell, ToolImage, Workspace } from '@aworld-train/core'
import { z } from 'zod'
import type { Egress } from './egress/open-egress.ts'

/** Families of tools. A lease's token names those that it may call. */
export const toolScopes = ['terminal', 'code', 'files', 'web', 'browser', 'search', 'models'] as const
export type ToolScope = (typeof toolScopes)[number]

/** Format of an answer. As JSON it is all that the tool knows. */
export const answerFormat = z.enum(['markdown', 'json', 'text'])

/** The parameter that chooses the format. */
export const outputFormat = answerFormat
  .default('markdown')
  .describe('"json" answers with everything as one JSON object; "markdown" and "text" differ where there is a table or a block of code.')

/** One MCP server of the environment: a name, and tools that belong together. */
export interface ToolServer {
  /** As `MCP_SERVERS` names it: `documents-csv-server`. */
  readonly name: string
  readonly scope: ToolScope
  /** One sentence for a person who chooses servers. */
  readonly description: string
  /** Services and models that must be configured before its tools can work, one in each entry. */
  readonly needs: readonly ToolNeed[]
  readonly tools: readonly ServerTool[]
  /** What the machine lacks for its tools, each with its remedy as a sentence. */
  missing?(browsers: { missing(): readonly string[] }): readonly string[]
  /** Tools that its program has and it does not offer, with the reason as a sentence for a model that calls one. */
  readonly refused?: Readonly<Record<string, string>> | undefined
}

/** A service or a model without which a server's tools answer with an error. At least one of `anyOf` must be configured. */
export interface ToolNeed {
  readonly anyOf: readonly string[]
  /** Advice to a person as a sentence: "Set TAVILY_API_KEY, or SEARXNG_BASE_URL." */
  readonly remedy: string
}

/**
 * A tool with typed input and output. `call` throws a ToolError if it cannot do what it was asked; the model reads the message. The text
 * for the model holds no time, duration, temporary path or request id, so that a run repeats; those stay in the output.
 */
export interface ServerTool<Input extends z.ZodObject = z.ZodObject, Output extends z.ZodObject = z.ZodObject> {
  readonly name: string
  readonly description: string
  readonly input: Input
  readonly output: Output
  call(input: z.output<Input>, context: ServerToolContext): Promise<z.output<Output>>
  /** The text of the output for the model. */
  toText(output: z.output<Output>): string
}

/** Parts that a call may use, all of which belong to the calling lease. */
export interface ServerToolContext {
  readonly workspace: Workspace
  /** Tier in which its commands run: in a jail of the kernel's, or simulated. */
  readonly tier: SandboxTier
  /** The shell of the calling agent's run, opened at its first use. */
  shell(): Promise<Shell>
  /**
   * Calls a tool of Playwright's in the browser of the lease, which starts at the first call. Resolves to the text of its answer. What the
   * browser refuses, and its end in the middle of the call, reject with a ToolError.
   */
  browse(tool: string, input: Readonly<Record<string, unknown>>): Promise<string>
  /** The screen of the lease, for its graphical programs; `null` if it has none. `display` is as `DISPLAY` names it. */
  desktop(): Promise<{ readonly display: string } | null>
  readonly outward: Outward
  /** The way of programs in the workspace to the web, for a browser. Rejects with a ToolError where no program of the machine runs. */
  egress(): Promise<Egress>
  readonly parsers: ParserJail
  /** The configured model of a role. Rejects with a ToolError if there is none. */
  model(role: ModelRole): Promise<ToolModel>
  /** Keeps a picture beside the answer. It is for people: a policy reads the text, which names its file. */
  show(image: ToolImage): void
  /** Aborts when the caller cancels, the lease ends or the time of the call is over. */
  readonly signal: AbortSignal
}

/** The models that tools ask, by the first word of their variables: `CODE_LLM_BASE_URL`, `CODE_LLM_MODEL_NAME`, `CODE_LLM_API_KEY`. */
export const modelRoles = ['browseruse', 'code', 'think', 'guard', 'audio', 'image', 'video'] as const
export type ModelRole = (typeof modelRoles)[number]

/** A part of what a model is asked: text, or an image in the encoding that `mediaType` names. */
export type ModelPart = { readonly text: string } | { readonly image: Buffer; readonly mediaType: string }

/** A model of a third party behind the Chat Completions API. */
export interface ToolModel {
  readonly name: string
  /** Sends a request body of the Chat Completions API as it is, and resolves to the answer. A refusal rejects with a ToolError. */
  chat(body: string): Promise<unknown>
  /** Resolves to the text of the answer. An error of the model rejects with a ToolError. */
  complete(request: {
    readonly system: string
    readonly user: string | readonly ModelPart[]
    readonly temperature: number
  }): Promise<string>
  /** Resolves to the words spoken in a recording, whose encoding the ending of `name` tells, by the Transcriptions API. */
  transcribe(recording: { readonly name: string; readonly bytes: Buffer }): Promise<string>
}

/** Declares a tool, with its types inferred from the schemas. */
export function defineTool<Input extends z.ZodObject, Output extends z.ZodObject>(tool: ServerTool<Input, Output>): ServerTool {
  return tool as unknown as ServerTool
}

/** Declares a tool with the parameter `output_format`. As JSON its text is the whole output, else that of `toText`. */
export function defineFormattedTool<Input extends z.ZodObject, Output extends z.ZodObject>(tool: ServerTool<Input, Output>): ServerTool {
  const { input, output, call, toText } = defineTool(tool)
  return {
    ...tool,
    input: input.extend({ output_format: outputFormat }),
    output: output.extend({ format: answerFormat }),
    call: async ({ output_format, ...rest }, context) => ({ ...(await call(rest, context)), format: output_format }),
    toText: ({ format, ...rest }) => (format === 'json' ? JSON.stringify(rest) : toText(rest)),
  }
}

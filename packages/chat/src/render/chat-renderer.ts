import { errorMessage, type Message, type ToolDefinition, TrainError } from '@aworld-train/core'
import { readJson } from '../json/json-text.ts'
import { TextCache } from '../text-cache.ts'
import type { ChatTemplate } from './chat-template.ts'
import { RenderingTooLong } from './compile-template.ts'
import { pythonJson } from './python-text.ts'
import { type MessageForm, type SampledIds, toTemplateMessages } from './template-messages.ts'
import { Dictionary, fromJson, type Value } from './values.ts'

/** Tools as a template reads them. Equal keys mean equal prompts. */
export interface ToolSet {
  readonly key: string
  /** The tools one by one, as JSON. */
  readonly parts: readonly string[]
  readonly value: readonly Value[] | null
}

export interface RenderOptions {
  readonly messages: readonly Message[]
  readonly tools: ToolSet
  readonly addGenerationPrompt: boolean
  readonly now: Date
  readonly sampledIds?: SampledIds | undefined
  /** Longest rendered text. A longer one throws RenderingTooLong. */
  readonly maxCharacters?: number | undefined
}

/** Renders messages with a template in the form that its probe found. */
export interface ChatRenderer {
  readonly form: MessageForm
  toolSet(tools: readonly ToolDefinition[], toolsJson?: string): ToolSet
  /** Renders messages. Throws GATEWAY_BAD_REQUEST with the error that the template raised. */
  render(options: RenderOptions): string
  /** Renders the same text in pieces. A growing conversation repeats the pieces of its messages. Throws as `render` does. */
  renderPieces(options: RenderOptions): string[]
}

export interface ModelTemplates {
  readonly default: ChatTemplate
  /** The template for requests with tools. */
  readonly toolUse: ChatTemplate | null
}

const cachedToolCharacters = 1_000_000
const noTools: ToolSet = { key: '', parts: [], value: null }

export function createChatRenderer(templates: ModelTemplates, form: MessageForm): ChatRenderer {
  const cache = new TextCache<ToolSet>(cachedToolCharacters)
  const renderPieces = ({ messages, tools, addGenerationPrompt, now, sampledIds, maxCharacters }: RenderOptions) => {
    const template = tools.value && templates.toolUse ? templates.toolUse : templates.default
    try {
      return template.renderPieces({
        messages: toTemplateMessages(messages, form, sampledIds),
        tools: tools.value as Value[] | null,
        addGenerationPrompt,
        now,
        maxCharacters,
      })
    } catch (cause) {
      if (cause instanceof TrainError || cause instanceof RenderingTooLong) throw cause
      const reason = errorMessage(cause)
      throw new TrainError('GATEWAY_BAD_REQUEST', `The chat template cannot render these messages: ${reason}`, { cause })
    }
  }
  return {
    form,
    renderPieces,
    render: (options) => renderPieces(options).join(''),
    toolSet(tools, toolsJson) {
      if (toolsJson === undefined && tools.length === 0) return noTools
      return cache.get(toolsJson ?? toolsText(tools), readTools)
    },
  }
}

/** Tools as the array of a Chat Completions request, in the key order that clients and transformers write. */
function toolsText(tools: readonly ToolDefinition[]): string {
  return JSON.stringify(
    tools.map(({ name, description, parameters }) => ({
      type: 'function',
      function: { name, ...(description === undefined ? {} : { description }), parameters },
    })),
  )
}

function readTools(text: string): ToolSet {
  let value: Value
  try {
    value = fromJson(readJson(text))
  } catch (cause) {
    throw new TrainError('GATEWAY_BAD_REQUEST', 'The tools of the request are not JSON; send an array of tools.', { cause })
  }
  if (!Array.isArray(value))
    throw new TrainError('GATEWAY_BAD_REQUEST', 'The tools of the request are not an array; send an array of tools.')
  if (value.length === 0) return noTools
  const parts = value.map((tool) => {
    const json = pythonJson(tool)
    if (tool instanceof Dictionary) tool.json = json
    return json
  })
  return { key: parts.join('\n'), parts, value }
}

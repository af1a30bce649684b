import type { Message, ToolDefinition } from '@aworld-train/core'
import { probeClock } from './load-chat-model.ts'
import { probeTemplate } from './probe/probe-template.ts'
import { reasoningTagsOf } from './reasoning-tags.ts'
import { createChatRenderer } from './render/chat-renderer.ts'
import { compileTemplate } from './render/chat-template.ts'

export interface ChatText {
  /** Jinja text. */
  readonly chatTemplate: string
  readonly messages: readonly Message[]
  readonly tools?: readonly ToolDefinition[] | undefined
}

/** Renders a conversation with its template, without a tokenizer, for making a vocabulary. Special tokens appear as text. */
export function renderChat({ chatTemplate, messages, tools = [] }: ChatText): string {
  const templates = { default: compileTemplate(chatTemplate, {}), toolUse: null }
  const probe = probeTemplate({ templates, stops: new Map(), now: probeClock() })
  const renderer = createChatRenderer(templates, { ...probe, reasoningTags: reasoningTagsOf(chatTemplate) })
  return renderer.render({ messages, tools: renderer.toolSet(tools), addGenerationPrompt: false, now: probeClock() })
}

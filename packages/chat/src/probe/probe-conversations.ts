import type { Message, ToolCall, ToolDefinition } from '@aworld-train/core'

/** Marker words of the probe. They have only letters and digits, so that no template changes them. */
export const words = {
  system: 'pRoBe5System',
  user: 'pRoBe5UserA',
  nextUser: 'pRoBe5UserB',
  answer: 'pRoBe5Answer',
  reasoning: 'pRoBe5Reason',
  argument: 'pRoBe5Argument',
  secondArgument: 'pRoBe5Other',
  tool: 'pRoBe5Tool',
  secondTool: 'pRoBe5Gadget',
  result: 'pRoBe5Result',
  secondResult: 'pRoBe5Outcome',
} as const

export const user = (content: string): Message => ({ role: 'user', content })
export const assistant = (content: string | null, more: Partial<Message> = {}): Message => ({ role: 'assistant', content, ...more })
const probeCall = (id: string, name: string, value: string): ToolCall => ({
  id,
  name,
  arguments: JSON.stringify({ key: value }),
})
export const toolResult = (toolCallId: string, content: string): Message => ({ role: 'tool', content, toolCallId })

export const firstCall = probeCall('probe-1', words.tool, words.argument)
export const secondCall = probeCall('probe-2', words.secondTool, words.secondArgument)

export const probeTools: readonly ToolDefinition[] = [words.tool, words.secondTool].map((name) => ({
  name,
  description: 'Probe.',
  parameters: { type: 'object', properties: { key: { type: 'string' } }, required: ['key'] },
}))

import { z } from 'zod'

/** A tool call of an assistant message. `arguments` is JSON text exactly as written. */
export const ToolCall = z.strictObject({
  id: z.string(),
  name: z.string(),
  arguments: z.string(),
})
export type ToolCall = z.infer<typeof ToolCall>

export const MessageRole = z.enum(['system', 'developer', 'user', 'assistant', 'tool'])
export type MessageRole = z.infer<typeof MessageRole>

/** One message of a conversation, in the neutral form that every dialect is decoded to. */
export const Message = z.strictObject({
  role: MessageRole,
  content: z.string().nullable(),
  reasoning: z.string().optional(),
  toolCalls: z.array(ToolCall).optional(),
  /** On a `tool` message: the call that it answers. */
  toolCallId: z.string().optional(),
  name: z.string().optional(),
})
export type Message = z.infer<typeof Message>

/** A tool as it is described to the policy; `parameters` is a JSON Schema. */
export const ToolDefinition = z.strictObject({
  name: z.string(),
  description: z.string().optional(),
  parameters: z.record(z.string(), z.unknown()),
})
export type ToolDefinition = z.infer<typeof ToolDefinition>

/** A picture that a tool returned. It is for people; the policy reads the text beside it, which names the picture. */
export const ToolImage = z.strictObject({
  mimeType: z.enum(['image/png', 'image/jpeg', 'image/gif', 'image/webp']),
  data: z.base64(),
  /** Set if it is no part of the answer, but the desktop of the lease after the call. */
  shows: z.literal('desktop').optional(),
})
export type ToolImage = z.infer<typeof ToolImage>

/** Answer of a tool. An error is an answer too: the policy sees its text. */
export const ToolResult = z.strictObject({
  content: z.string(),
  isError: z.boolean(),
  images: z.array(ToolImage).optional(),
  /** File and line of the user's code that threw, if the tool is a function that did. The policy does not see it. */
  source: z.string().optional(),
})
export type ToolResult = z.infer<typeof ToolResult>

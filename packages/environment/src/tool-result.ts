import { desktopFrameKey, ToolImage, type ToolResult } from '@aworld-train/core'
import type { CallToolResult } from '@modelcontextprotocol/client'

/** Code of the JSON-RPC error that stands for an answer that was not read. */
export const invalidAnswerCode = -32_099

/** Code of the JSON-RPC error that stands for an answer that will not come. */
export const streamEndCode = -32_098

/**
 * Turns a server's answer into what the policy reads: its texts joined by newlines, everything else named. Over the limit it is an error.
 * Its images are left out if they are together over the limit, and that of the lease's desktop if it does not fit beside them.
 */
export function toToolResult(tool: string, result: CallToolResult, maxBytes: number): ToolResult {
  const blocks = result.content ?? []
  const text = blocks.length === 1 && blocks[0]?.type === 'text' ? blocks[0].text : blocks.map(describeBlock).join('\n')
  const content = text || result.structuredContent === undefined ? text : JSON.stringify(result.structuredContent)
  // A UTF-16 unit is at most three bytes of UTF-8.
  if (content.length * 3 > maxBytes && Buffer.byteLength(content) > maxBytes) {
    return invalidResult(`The answer of the tool "${tool}" is ${Buffer.byteLength(content)} bytes long; at most ${maxBytes} are passed on.`)
  }
  const images = blocks.flatMap((block) =>
    block.type === 'image' ? (ToolImage.safeParse({ mimeType: block.mimeType, data: block.data }).data ?? []) : [],
  )
  if (bytesOf(images) > maxBytes) images.length = 0
  const frame = ToolImage.safeParse(result._meta?.[desktopFrameKey]).data
  if (frame && bytesOf([...images, frame]) <= maxBytes) images.push(frame)
  return { content, isError: result.isError === true, ...(images.length > 0 && { images }) }
}

function bytesOf(images: readonly ToolImage[]): number {
  return images.reduce((length, { data }) => length + data.length, 0)
}

/** The result that the policy reads for an answer that could not be taken. */
export function invalidResult(message: string): ToolResult {
  return { content: `TOOL_RESULT_INVALID: ${message}`, isError: true }
}

function describeBlock(block: CallToolResult['content'][number]): string {
  switch (block.type) {
    case 'text':
      return block.text
    case 'image':
    case 'audio':
      return `[${block.type} ${block.mimeType}, ${Math.floor((block.data.length * 3) / 4)} bytes]`
    case 'resource':
      return 'text' in block.resource ? block.resource.text : `[resource ${block.resource.uri}]`
    case 'resource_link':
      return `[resource ${block.uri}]`
  }
}

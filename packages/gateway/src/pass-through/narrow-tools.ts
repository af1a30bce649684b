import { encodeToolChoice, keepAllowed } from '../dialects/chat-completions/client/index.ts'
import { decodeToolChoice, decodeTools } from '../dialects/chat-completions/decode-tools.ts'
import { itemTexts, memberText } from '../dialects/member-text.ts'
import { type Fields, readObject } from '../dialects/read-fields.ts'
import { checkToolChoice } from '../dialects/tool-choice.ts'
import { parseBody } from '../stages/parse-body.ts'
import { setMembers } from './set-members.ts'

/**
 * Rewrites a Chat Completions request with the `tool_choice` `allowed_tools` for a server that does not know this form. Tools that are not
 * allowed are left out, and each of the rest stays as it was written. Throws GATEWAY_BAD_REQUEST for a choice that no tool can meet.
 */
export function narrowTools(body: Buffer): Buffer {
  const { value, json } = parseBody(body)
  const fields: Fields = readObject(value, 'body')
  const { list, toolsJson } = decodeTools(fields, json)
  const choice = checkToolChoice(decodeToolChoice(fields['tool_choice']), list.tools, true, list.hostedNames)
  const names = list.tools.map(({ name }) => name)
  const written = list.hosted.length > 0 ? toolsJson : memberText(json, 'tools')
  const allowedTools = keepAllowed(choice, names, itemTexts(written ?? '[]'))
  return setMembers(body, { tools: `[${allowedTools.join(',')}]`, tool_choice: JSON.stringify(encodeToolChoice(choice)) })
}

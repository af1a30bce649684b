import { unsupportedInput } from '../failure.ts'
import { readArray, readObject, readString } from './read-fields.ts'

/** By the type of a part that carries text: the field it stands in. */
export type TextParts = Readonly<Record<string, string>>

/**
 * The text of a string or of a list of parts, which are joined; what they carry beside it has no meaning here. `null` where
 * there is none. Throws GATEWAY_INPUT_UNSUPPORTED for a part that `kinds` does not know.
 */
export function readText(content: unknown, path: string, kinds: TextParts): string | null {
  if (content === undefined || content === null) return null
  if (typeof content === 'string') return readString(content, path)
  let text = ''
  for (const [index, value] of readArray(content, path).entries()) {
    const part = readObject(value, `${path}[${index}]`)
    const type = readString(part['type'], `${path}[${index}].type`)
    const field = Object.hasOwn(kinds, type) ? kinds[type] : undefined
    if (field === undefined) throw unsupportedInput(type, `${path}[${index}].type`)
    text += readString(part[field], `${path}[${index}].${field}`)
  }
  return text
}

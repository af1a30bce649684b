import { unsupportedInput } from '../failure.ts'
import { readArray, readObject, readString } from './read-fields.ts'

/** The field that holds the text, by the type of the part. */
export type TextParts = Readonly<Record<string, string>>

/**
 * Reads the text of a string, or the joined texts of a list of parts. Other members of the parts have no meaning here. `null` if there is
 * no text. Throws GATEWAY_INPUT_UNSUPPORTED for a part that `kinds` does not know.
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

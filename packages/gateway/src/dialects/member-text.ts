import { endOfString, quote, scanMembers } from '../json/scan-members.ts'

/** A name as JSON reads it. */
const nameOf = (written: string): string => (written.includes('\\') ? (JSON.parse(`"${written}"`) as string) : written)

/**
 * The text of member `name` of the object in the valid text `json`, exactly as written. If the name stands twice, it is the last one, as
 * JSON.parse reads it. `undefined` if it is missing.
 */
export function memberText(json: string, name: string): string | undefined {
  const last = scanMembers(json, (written) => nameOf(written) === name).at(-1)
  return last && json.slice(last.start, last.end).trim()
}

/** The text of the member that `path` leads to, name by name. */
export function nestedText(json: string, path: readonly string[]): string | undefined {
  let text: string | undefined = json
  for (const name of path) text = text === undefined ? undefined : memberText(text, name)
  return text
}

/** Like `memberText`, for every member in one pass: texts by name. */
export function memberTexts(json: string): ReadonlyMap<string, string> {
  const members = scanMembers(json, () => true)
  return new Map(members.map(({ name, start, end }) => [nameOf(name), json.slice(start, end).trim()]))
}

/** The texts of the items of the array in the valid text `json`, each exactly as written. */
export function itemTexts(json: string): string[] {
  const items: string[] = []
  let depth = 0
  let start = json.indexOf('[') + 1
  for (let index = start - 1; index < json.length; index++) {
    const code = json.charCodeAt(index)
    if (code === quote) {
      index = endOfString(json, index) - 1
    } else if (code === 0x7b || code === 0x5b) {
      depth++
    } else if (code === 0x7d || code === 0x5d || (code === 0x2c && depth === 1)) {
      if (depth === 1) {
        const text = json.slice(start, index).trim()
        if (text !== '') items.push(text)
        start = index + 1
      }
      if (code !== 0x2c) depth--
    }
  }
  return items
}

const quote = 0x22
const backslash = 0x5c

/** Index behind the string that opens at `start`. */
function endOfString(json: string, start: number): number {
  let end = json.indexOf('"', start + 1)
  while (end > 0) {
    let slashes = 0
    while (json.charCodeAt(end - 1 - slashes) === backslash) slashes++
    if (slashes % 2 === 0) return end + 1
    end = json.indexOf('"', end + 1)
  }
  return json.length
}

/**
 * The text of member `name` of the object that valid `json` holds, exactly as written; the last one where the name stands
 * twice, as JSON.parse reads it. `undefined` where it is missing.
 */
export function memberText(json: string, name: string): string | undefined {
  const key = JSON.stringify(name)
  let depth = 0
  let found: string | undefined
  let valueStart = -1
  let keyStart = -1
  let keyEnd = -1
  for (let index = 0; index < json.length; index++) {
    const code = json.charCodeAt(index)
    if (code === quote) {
      const end = endOfString(json, index)
      if (depth === 1 && valueStart < 0) {
        keyStart = index
        keyEnd = end
      }
      index = end - 1
    } else if (code === 0x7b || code === 0x5b) {
      depth++
    } else if (code === 0x3a && depth === 1 && valueStart < 0) {
      valueStart = index + 1
    } else if ((code === 0x2c && depth === 1) || code === 0x7d || code === 0x5d) {
      if (depth === 1 && valueStart >= 0) {
        if (keyEnd - keyStart === key.length && json.startsWith(key, keyStart)) found = json.slice(valueStart, index).trim()
        valueStart = -1
      }
      if (code !== 0x2c) depth--
    }
  }
  return found
}

/** The texts of the items of the array that valid `json` holds, each exactly as written. */
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

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

/** Calls `found` with each member of the object that valid `json` holds: its name as written, quotes included, and where its value lies. */
function eachMember(json: string, found: (keyStart: number, keyEnd: number, valueStart: number, valueEnd: number) => void): void {
  let depth = 0
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
        found(keyStart, keyEnd, valueStart, index)
        valueStart = -1
      }
      if (code !== 0x2c) depth--
    }
  }
}

/**
 * The text of member `name` of the object that valid `json` holds, exactly as written; the last one where the name stands
 * twice, as JSON.parse reads it. `undefined` where it is missing, or its name is written with escapes that JSON.stringify does not use.
 */
export function memberText(json: string, name: string): string | undefined {
  const key = JSON.stringify(name)
  let text: string | undefined
  eachMember(json, (keyStart, keyEnd, start, end) => {
    if (keyEnd - keyStart === key.length && json.startsWith(key, keyStart)) text = json.slice(start, end).trim()
  })
  return text
}

/** As `memberText`, for every member in one pass: texts by name. */
export function memberTexts(json: string): ReadonlyMap<string, string> {
  const texts = new Map<string, string>()
  eachMember(json, (keyStart, keyEnd, start, end) => {
    texts.set(JSON.parse(json.slice(keyStart, keyEnd)) as string, json.slice(start, end).trim())
  })
  return texts
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

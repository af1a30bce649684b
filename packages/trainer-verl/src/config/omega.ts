import { isTree, type KeyTree } from '@aworld-train/training'
import { bareValue } from './hydra-override.ts'

/** The value at a dotted path; `undefined` where there is none. */
export function valueAt(tree: KeyTree, path: string): unknown {
  return path.split('.').reduce<unknown>((value, key) => (isTree(value) ? value[key] : undefined), tree)
}

/**
 * The tree with its references replaced as OmegaConf 2.3 does: `${a.b}`, `${.sibling}`, `${oc.select:a.b,default}` and
 * `${oc.env:NAME,default}`, alone or inside text. A reference to nothing stays as it is written.
 */
export function resolveTree(tree: KeyTree, environment: Readonly<Record<string, string | undefined>> = {}): Record<string, unknown> {
  const resolveValue = (value: unknown, path: readonly string[], depth: number): unknown => {
    if (Array.isArray(value)) return value.map((item, index) => resolveValue(item, [...path, String(index)], depth))
    if (isTree(value))
      return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, resolveValue(member, [...path, key], depth)]))
    if (typeof value !== 'string' || !value.includes('${') || depth > 20) return value
    const parts = splitReferences(value)
    if (parts.length === 1 && parts[0]!.reference) return follow(parts[0]!.text, value, path, depth)
    return parts
      .map(({ text, reference }) => {
        if (!reference) return text
        const found = follow(text, `\${${text}}`, path, depth)
        return typeof found === 'object' && found !== null ? `\${${text}}` : String(found)
      })
      .join('')
  }
  const follow = (reference: string, written: string, path: readonly string[], depth: number): unknown => {
    const call = /^([\w.]+):([\s\S]*)$/.exec(reference)
    const [name = '', fallback] = splitOnce(call ? call[2]! : reference)
    const missing = () =>
      fallback === undefined ? (call?.[1] === 'oc.select' ? null : written) : resolveValue(bareText(fallback), path, depth + 1)
    if (call?.[1] === 'oc.env') return environment[name] ?? missing()
    if (call && call[1] !== 'oc.select') return written
    const absolute = toAbsolute(name, path)
    const found = valueAt(tree, absolute)
    if (found === undefined || found === '???') return missing()
    return resolveValue(found, absolute.split('.'), depth + 1)
  }
  return resolveValue(tree, [], 0) as Record<string, unknown>
}

/** Leading dots count up from the mapping that holds the reference. */
function toAbsolute(name: string, path: readonly string[]): string {
  const dots = /^\.*/.exec(name)![0].length
  return dots === 0 ? name : [...path.slice(0, path.length - dots), name.slice(dots)].join('.')
}

function splitOnce(text: string): [string, string | undefined] {
  const at = text.indexOf(',')
  return at < 0 ? [text.trim(), undefined] : [text.slice(0, at).trim(), text.slice(at + 1).trim()]
}

function bareText(text: string): unknown {
  if (text === '[]') return []
  if (text === '{}') return {}
  const quoted = /^'(.*)'$|^"(.*)"$/.exec(text)
  return quoted ? (quoted[1] ?? quoted[2]) : bareValue(text)
}

/** Text cut into literal parts and references, which may contain references themselves. */
function splitReferences(value: string): { text: string; reference: boolean }[] {
  const parts: { text: string; reference: boolean }[] = []
  let from = 0
  for (let at = value.indexOf('${'); at >= 0; at = value.indexOf('${', from)) {
    let depth = 0
    let end = at
    for (; end < value.length; end++) {
      if (value.startsWith('${', end)) depth++
      if (value[end] === '}' && --depth === 0) break
    }
    if (at > from) parts.push({ text: value.slice(from, at), reference: false })
    parts.push({ text: value.slice(at + 2, end), reference: true })
    from = end + 1
  }
  if (from < value.length) parts.push({ text: value.slice(from), reference: false })
  return parts
}

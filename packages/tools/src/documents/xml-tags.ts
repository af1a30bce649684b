import { decodeEntities } from './markdown.ts'

/** The opening tags of an element, with or without a prefix if the name has none. */
export function tags(xml: string, name: string): string[] {
  const prefix = name.includes(':') ? '' : '(?:\\w+:)?'
  return Array.from(xml.matchAll(new RegExp(`<${prefix}${name}\\s[^>]*>`, 'g')), ([tag]) => tag)
}

/** The value of an attribute of a tag; empty if it has none. */
export function attribute(tag: string, name: string): string {
  const [, , value = ''] = new RegExp(`\\s${name}\\s*=\\s*(["'])(.*?)\\1`, 's').exec(tag) ?? []
  return decodeEntities(value)
}

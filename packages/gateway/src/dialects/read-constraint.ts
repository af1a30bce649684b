import type { Constraint } from '@aworld-train/core'
import type { RequestedConstraint } from '../call.ts'
import { badRequest } from '../failure.ts'
import { nestedText } from './member-text.ts'
import { checkDepth, type Fields, readArray, readObject, readString, wrongType } from './read-fields.ts'

/** Most characters of a schema, pattern or grammar. It is part of every call and of every recorded turn. */
const longest = 64 * 1024

function bounded(text: string, path: string): string {
  if (text.length <= longest) return text
  throw badRequest(`"${path}" has ${text.length} characters; at most ${longest} are taken. Shorten it.`, path)
}

function readPattern(value: unknown, path: string): string {
  const text = bounded(readString(value, path), path)
  if (text === '') throw badRequest(`"${path}" is empty; say what the answer must be, or leave it out.`, path)
  return text
}

/** The text of a schema as it was written. `names` lead to it in `json`. */
function readSchema(value: unknown, json: string, names: readonly string[]): Constraint {
  const path = names.join('.')
  checkDepth(readObject(value, path), path)
  return { kind: 'json-schema', schema: bounded(nestedText(json, names) ?? JSON.stringify(value), path) }
}

export interface FormatPlace {
  /** The whole request. */
  readonly json: string
  /** Path to the format. */
  readonly path: readonly string[]
  /** Member of the format that holds its schema; absent where the format holds it directly. */
  readonly inner?: string | undefined
}

/**
 * Reads the form that a `{type: 'text' | 'json_object' | 'json_schema'}` asks for; `undefined` for text. Throws GATEWAY_BAD_REQUEST for
 * another type and for an invalid schema.
 */
export function readFormat(value: unknown, { json, path, inner }: FormatPlace): RequestedConstraint | undefined {
  if (value === undefined || value === null) return undefined
  const param = path.join('.')
  const format = readObject(value, param)
  const type = readString(format['type'], `${param}.type`)
  if (type === 'text') return undefined
  if (type === 'json_object') return { form: { kind: 'json-object' }, param, strict: false }
  if (type !== 'json_schema') {
    throw badRequest(`"${param}.type" is "${type}"; it must be text, json_object or json_schema.`, `${param}.type`)
  }
  const at = inner === undefined ? path : [...path, inner]
  const holder = inner === undefined ? format : readObject(format[inner], at.join('.'))
  return { form: readSchema(holder['schema'], json, [...at, 'schema']), param, strict: holder['strict'] === true }
}

const outputs = 'structured_outputs'

const readers: Readonly<Record<string, (value: unknown, json: string) => Constraint | undefined>> = {
  json: (value, json) =>
    typeof value === 'string'
      ? { kind: 'json-schema', schema: readPattern(value, `${outputs}.json`) }
      : readSchema(value, json, [outputs, 'json']),
  json_object(value) {
    if (typeof value !== 'boolean') wrongType(`${outputs}.json_object`, 'true or false', value)
    return value ? { kind: 'json-object' } : undefined
  },
  regex: (value) => ({ kind: 'regex', pattern: readPattern(value, `${outputs}.regex`) }),
  choice(value) {
    const choices = readArray(value, `${outputs}.choice`).map((text, index) => readPattern(text, `${outputs}.choice[${index}]`))
    if (choices.length === 0) throw badRequest(`"${outputs}.choice" is empty; name at least one answer.`, `${outputs}.choice`)
    bounded(choices.join(''), `${outputs}.choice`)
    return { kind: 'choice', choices }
  },
  grammar: (value) => ({ kind: 'grammar', grammar: readPattern(value, `${outputs}.grammar`) }),
}

/** Reads the form in vLLM's `structured_outputs` (sampling_params.py of vLLM 0.32, StructuredOutputsParams), which holds one form. */
export function readStructuredOutputs(value: unknown, json: string): RequestedConstraint | undefined {
  if (value === undefined || value === null) return undefined
  const members = readObject(value, outputs)
  const names = Object.keys(readers)
  const found: Constraint[] = []
  for (const name in members) {
    const member = members[name]
    if (member === null || member === undefined) continue
    const read = Object.hasOwn(readers, name) ? readers[name] : undefined
    if (!read) throw badRequest(`"${outputs}.${name}" is not served; known are: ${names.join(', ')}.`, `${outputs}.${name}`)
    const form = read(member, json)
    if (form) found.push(form)
  }
  const [form] = found
  if (!form || found.length > 1)
    throw badRequest(`"${outputs}" asks for ${found.length} forms; ask for one of ${names.join(', ')}.`, outputs)
  return { form, param: outputs, strict: true }
}

/** Whether `fields` has no meaningful member but `name`. */
export function holdsOnly(fields: Fields, name: string): boolean {
  return Object.keys(fields).every((each) => each === name || fields[each] === null)
}

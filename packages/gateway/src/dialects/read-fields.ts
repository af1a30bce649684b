import { isRecord } from '@aworld-train/core'
import { badRequest } from '../failure.ts'

export type Fields = Readonly<Record<string, unknown>>

const kindOf = (value: unknown) => (value === null ? 'null' : Array.isArray(value) ? 'an array' : `a ${typeof value}`)

/** A value as an error message shows it. An object or a list is named by its kind. */
export const shown = (value: unknown): string => (typeof value === 'object' ? kindOf(value) : JSON.stringify(value))

export function wrongType(path: string, expected: string, value: unknown): never {
  const found = value === undefined ? 'is missing' : `is ${kindOf(value)}`
  throw badRequest(`"${path}" ${found}; it must be ${expected}.`, path)
}

export function readObject(value: unknown, path: string): Fields {
  if (!isRecord(value)) wrongType(path, 'an object', value)
  return value as Fields
}

export function readArray(value: unknown, path: string): readonly unknown[] {
  if (!Array.isArray(value)) wrongType(path, 'an array', value)
  return value
}

/** Reads a string without lone surrogates, which neither UTF-8 nor a tokenizer can represent. */
export function readString(value: unknown, path: string): string {
  if (typeof value !== 'string') wrongType(path, 'a string', value)
  return value.isWellFormed() ? value : value.toWellFormed()
}

/** `undefined` where the field is missing or null. */
export function readOptionalString(value: unknown, path: string): string | undefined {
  return value === undefined || value === null ? undefined : readString(value, path)
}

/** `undefined` where the field is missing or null. */
export function readOptionalFlag(value: unknown, path: string): boolean | undefined {
  if (value === undefined || value === null) return undefined
  if (typeof value !== 'boolean') wrongType(path, 'true or false', value)
  return value
}

export const readFlag = (value: unknown, path: string): boolean => readOptionalFlag(value, path) ?? false

export function readPositiveInteger(value: unknown, path: string): number | null {
  if (value === undefined || value === null) return null
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < 1) {
    throw badRequest(`"${path}" is ${shown(value)}; it must be a whole number of at least 1.`, path)
  }
  return value
}

/** Refuses values nested so deep that rendering them would exhaust the stack. */
export function checkDepth(value: unknown, path: string, maxDepth = 64): void {
  let level: unknown[] = [value]
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > maxDepth) throw badRequest(`"${path}" is nested more than ${maxDepth} deep.`, path)
    const next: unknown[] = []
    for (const item of level) {
      if (typeof item === 'object' && item !== null)
        for (const child of Object.values(item)) if (typeof child === 'object') next.push(child)
    }
    level = next
  }
}

import { dictionaryMethods, listMethods, type Method, stringMethods } from './methods.ts'
import { numeric } from './operators.ts'
import { pythonString } from './python-text.ts'
import { Callable, Dictionary, Float, Loop, Namespace, Tuple, typeName, type Value } from './values.ts'

/** `value.name` of jinja2: an attribute first, then a member; undefined if there is neither. */
export function attribute(owner: Value, name: string): Value {
  if (owner instanceof Dictionary) return boundMethod(dictionaryMethods, owner, name) ?? owner.get(name)
  if (owner instanceof Namespace) return owner.fields.get(name)
  if (owner instanceof Loop) return loopAttribute(owner, name)
  if (owner === undefined) throw new Error(`an undefined value has no attribute ${name}`)
  if (typeof owner === 'string') return boundMethod(stringMethods, owner, name)
  return Array.isArray(owner) ? boundMethod(listMethods, owner, name) : undefined
}

/** `value[key]` of jinja2: a member first, then an attribute. */
export function member(owner: Value, key: Value): Value {
  if (owner === undefined) throw new Error(`an undefined value has no item ${pythonString(key)}`)
  if (owner instanceof Dictionary) {
    if (typeof key === 'string') return owner.has(key) ? owner.get(key) : boundMethod(dictionaryMethods, owner, key)
    return typeof key === 'number' || key === null ? owner.get(key) : undefined
  }
  if (typeof key === 'string') return attribute(owner, key)
  const index = key instanceof Float ? null : numeric(key)
  if (index === null) return undefined
  if (typeof owner === 'string') return itemAt(hasSurrogates(owner) ? Array.from(owner) : owner, index)
  if (Array.isArray(owner)) return itemAt(owner, index)
  return owner instanceof Tuple ? itemAt(owner.items, index) : undefined
}

function itemAt(items: string | readonly Value[], index: number): Value {
  return items[index < 0 ? items.length + index : index]
}

function hasSurrogates(text: string): boolean {
  return /[\ud800-\udbff]/.test(text)
}

function boundMethod<T extends Value>(table: Readonly<Record<string, Method<T>>>, owner: T, name: string): Callable | undefined {
  if (!Object.hasOwn(table, name)) return undefined
  return new Callable((args, keywords) => table[name]!(owner, args, keywords))
}

function loopAttribute(loop: Loop, name: string): Value {
  const { items, index0 } = loop
  switch (name) {
    case 'index':
      return index0 + 1
    case 'index0':
      return index0
    case 'revindex':
      return items.length - index0
    case 'revindex0':
      return items.length - index0 - 1
    case 'first':
      return index0 === 0
    case 'last':
      return index0 === items.length - 1
    case 'length':
      return items.length
    case 'previtem':
      return items[index0 - 1]
    case 'nextitem':
      return items[index0 + 1]
    case 'depth':
      return 1
    case 'depth0':
      return 0
    case 'cycle':
      return new Callable((args) => args[index0 % args.length])
    case 'changed':
      return new Callable((args) => loop.changed(args.map(pythonString).join('\0')))
    default:
      return undefined
  }
}

/** `value[start:stop:step]` of Python. */
export function slice(owner: Value, start: Value, stop: Value, step: Value): Value {
  const by = bound(step) ?? 1
  if (by === 0) throw new Error('slice step cannot be zero')
  if (typeof owner === 'string') {
    if (!hasSurrogates(owner) && by === 1) return owner.slice(...range(owner.length, bound(start), bound(stop)))
    return picked(Array.from(owner), bound(start), bound(stop), by).join('')
  }
  if (Array.isArray(owner)) return picked(owner, bound(start), bound(stop), by)
  if (owner instanceof Tuple) return new Tuple(picked(owner.items, bound(start), bound(stop), by))
  throw new TypeError(`'${typeName(owner)}' object cannot be sliced`)
}

function bound(value: Value): number | null {
  if (value === undefined || value === null) return null
  const number = value instanceof Float ? null : numeric(value)
  if (number === null) throw new TypeError('slice indices must be integers or None')
  return number
}

function range(length: number, start: number | null, stop: number | null): [number, number] {
  const from = clamp(start ?? 0, length)
  return [from, Math.max(from, clamp(stop ?? length, length))]
}

function clamp(index: number, length: number): number {
  return index < 0 ? Math.max(0, length + index) : Math.min(index, length)
}

function picked<T>(items: readonly T[], start: number | null, stop: number | null, step: number): T[] {
  if (step === 1) return items.slice(...range(items.length, start, stop))
  const { length } = items
  const result: T[] = []
  if (step > 0) {
    const [from, to] = range(length, start, stop)
    for (let index = from; index < to; index += step) result.push(items[index]!)
    return result
  }
  const first = start === null ? length - 1 : start < 0 ? length + start : Math.min(start, length - 1)
  const last = stop === null ? -1 : stop < 0 ? Math.max(-1, length + stop) : stop
  for (let index = first; index > last && index >= 0; index += step) result.push(items[index]!)
  return result
}

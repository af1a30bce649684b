import { type Fields, readOptionalString, readString } from '../read-fields.ts'

/** A tool of a namespace under its own name. */
export interface NamespacedName {
  readonly namespace?: string
  readonly name: string
}

/** Tools of namespaces. Prompts and records know each as a function under one name. */
export class Namespaces {
  readonly #own = new Map<string, NamespacedName>()

  /** Returns the tool's name in the prompt. */
  flatten(namespace: string | null, name: string): string {
    if (namespace === null) return name
    const flat = namespace.endsWith('__') ? namespace + name : `${namespace}__${name}`
    this.#own.set(flat, { namespace, name })
    return flat
  }

  /** Returns the name in the prompt of the tool that an item or a choice names. */
  nameIn(fields: Fields, path: string): string {
    const name = readString(fields['name'], `${path}.name`)
    return this.flatten(readOptionalString(fields['namespace'], `${path}.namespace`) ?? null, name)
  }

  /** The client's name of the tool with this name in the prompt. */
  own(name: string): NamespacedName {
    return this.#own.get(name) ?? { name }
  }
}

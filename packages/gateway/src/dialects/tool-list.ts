import type { ToolDefinition } from '@aworld-train/core'
import { itemTexts, memberText } from './member-text.ts'
import { checkDepth, type Fields, readArray, readObject, readOptionalString, readString } from './read-fields.ts'
import { customToolSchema, type WrittenTool, wrapToolsJson } from './tools-json.ts'

/** A tool of a request, with its text as it was written. */
export interface ToolItem {
  readonly fields: Fields
  readonly path: string
  readonly text: string
}

/** The items of `tools` in an object whose text is `json`; none if it is missing or null. */
export function toolItems(value: unknown, json: string, path = 'tools'): ToolItem[] {
  if (value === undefined || value === null) return []
  const texts = itemTexts(memberText(json, 'tools') ?? '[]')
  return readArray(value, path).map((item, index) => {
    const at = `${path}[${index}]`
    return { fields: readObject(item, at), path: at, text: texts[index] ?? '{}' }
  })
}

/** The place of a tool's name, description and schema. */
export interface ToolPlace {
  readonly fields: Fields
  readonly path: string
  readonly text: string
  /** Path to the schema in `text`. Its last name is also the schema's name in `fields`. */
  readonly schemaPath: readonly string[]
  /** Whether the tool's input is plain text; it then becomes a function with one string. */
  readonly isCustom?: boolean
  /** Maps the tool's name to its name in the prompt, if that differs. */
  readonly named?: (name: string) => string
}

/** The tools of one request: those that the agent runs, and hosted ones, which a provider would run and no prompt names. */
export class ToolList {
  readonly tools: ToolDefinition[] = []
  readonly customTools = new Set<string>()
  /** Types of the hosted tools. */
  readonly hosted: string[] = []
  /** Names by which a choice may ask for a hosted tool. */
  readonly hostedNames = new Set<string>()
  readonly #written: WrittenTool[] = []

  add({ fields, path, text, schemaPath, isCustom = false, named = (name) => name }: ToolPlace): void {
    const name = named(readString(fields['name'], `${path}.name`))
    const description = readOptionalString(fields['description'], `${path}.description`)
    const member = schemaPath.at(-1)!
    if (isCustom) this.customTools.add(name)
    const parameters = isCustom ? customToolSchema : readObject(fields[member] ?? {}, `${path}.${member}`)
    checkDepth(parameters, `${path}.${member}`)
    const tool: ToolDefinition = description === undefined ? { name, parameters } : { name, description, parameters }
    this.tools.push(tool)
    this.#written.push({ tool, text, schemaPath: isCustom ? null : schemaPath })
  }

  addHosted(type: string, { name }: Fields): void {
    this.hosted.push(type)
    this.hostedNames.add(type)
    if (typeof name === 'string') this.hostedNames.add(name)
  }

  /** The tools in the form of Chat Completions. */
  json(): string | undefined {
    return wrapToolsJson(this.#written)
  }
}

import { type Command, InvalidArgumentError, Option } from 'commander'
import { z } from 'zod'

export interface CommandArgument {
  readonly name: string
  readonly description: string
  readonly required?: boolean
}

/** A command. Its options are a Zod object, from which flags, `--help` and the reference are made. */
export interface CommandDefinition<Options extends z.ZodObject = z.ZodObject> {
  readonly arguments: readonly CommandArgument[]
  readonly options: Options
  /** Resolves to the exit code; `undefined` means 0. */
  run(input: {
    readonly args: readonly (string | undefined)[]
    readonly options: z.output<Options>
    readonly signal: AbortSignal
    /** Standard output. With `--json` nothing else reaches it, whatever the code of a project prints. */
    readonly output: NodeJS.WriteStream
  }): Promise<number | undefined>
}

export function defineCommand<Options extends z.ZodObject>(definition: CommandDefinition<Options>): CommandDefinition {
  return definition as unknown as CommandDefinition
}

/** One flag of a schema: `--max-turns <number>`, a switch for a boolean, choices for an enum, a flag that may stand several times for a list. */
export function toOptions(schema: z.ZodObject): Option[] {
  return Object.entries(schema.shape).map(([name, field]) => toOption(name, field as z.ZodType))
}

function toOption(name: string, field: z.ZodType): Option {
  const flag = `--${name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`
  const description = field.description ?? ''
  const type = unwrap(field)
  if (type instanceof z.ZodBoolean) return new Option(flag, description)
  const isList = type instanceof z.ZodArray
  const item = isList ? (type.element as z.ZodType) : type
  const placeholder = item instanceof z.ZodNumber ? '<number>' : item instanceof z.ZodEnum ? '<name>' : '<text>'
  const option = new Option(`${flag} ${placeholder}`, description)
  if (!field.safeParse(undefined).success) option.makeOptionMandatory()
  if (field instanceof z.ZodDefault) option.default(field.parse(undefined))
  if (item instanceof z.ZodEnum) option.choices(item.options.map(String))
  return option.argParser((text, previous: unknown) => {
    const value = item instanceof z.ZodNumber ? toNumber(text) : text
    const parsed = item.safeParse(value)
    if (!parsed.success) throw new InvalidArgumentError(parsed.error.issues.map(toSentence).join(' '))
    return isList ? [...((previous as unknown[] | undefined) ?? []), parsed.data] : parsed.data
  })
}

function toSentence(issue: z.core.$ZodIssue): string {
  if (issue.code === 'too_small') return `It must be at least ${issue.minimum}.`
  if (issue.code === 'too_big') return `It must be at most ${issue.maximum}.`
  if (issue.code === 'invalid_type' && issue.expected === 'int') return 'It must be a whole number.'
  return issue.message
}

function toNumber(text: string): number {
  const value = text.trim() === '' ? Number.NaN : Number(text)
  if (Number.isNaN(value)) throw new InvalidArgumentError('Give a number.')
  return value
}

function unwrap(field: z.ZodType): z.ZodType {
  if (field instanceof z.ZodOptional || field instanceof z.ZodDefault || field instanceof z.ZodNullable)
    return unwrap(field.unwrap() as z.ZodType)
  return field
}

/** Puts a definition on a commander command. `run` gets the parsed options. */
export function applyDefinition(
  command: Command,
  definition: CommandDefinition,
  run: (args: readonly (string | undefined)[], options: Record<string, unknown>) => Promise<void>,
): void {
  for (const { name, description, required } of definition.arguments) command.argument(required ? `<${name}>` : `[${name}]`, description)
  for (const option of toOptions(definition.options)) command.addOption(option)
  command.action(async (...parameters: unknown[]) => {
    const args = parameters.slice(0, definition.arguments.length) as (string | undefined)[]
    const options = parameters[definition.arguments.length] as Record<string, unknown>
    await run(args, definition.options.parse(options))
  })
}

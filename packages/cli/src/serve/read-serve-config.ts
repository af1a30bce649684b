import { readFileSync } from 'node:fs'
import { didYouMean, errorMessage, TrainError } from '@aworld-train/core'
import { keyProblem } from '@aworld-train/gateway'
import { describeIssue, isTree, readSecret, type Secret } from '@aworld-train/training'
import { parseDocument } from 'yaml'
import type { z } from 'zod'
import { ServeConfig } from './serve-config.ts'

type Path = readonly PropertyKey[]

const valueAt = (tree: unknown, path: Path): unknown =>
  path.reduce<unknown>((value, key) => (value as Record<PropertyKey, unknown> | null | undefined)?.[key], tree)

interface Definition {
  readonly type: string
  readonly innerType?: z.ZodType
  readonly valueType?: z.ZodType
  readonly options?: readonly z.ZodType[]
}

const definitionOf = (schema: z.ZodType) => schema.def as unknown as Definition

/** The schema without wrappers for a default or null. */
function bare(schema: z.ZodType): z.ZodType {
  const { innerType } = definitionOf(schema)
  return innerType ? bare(innerType) : schema
}

const shapeOf = (schema: z.ZodType): Record<string, z.ZodType> => (schema as z.ZodObject).shape as Record<string, z.ZodType>

/** The object schema for `value`. Among several it is the one with the same `kind`. */
function objectSchema(schema: z.ZodType, value: unknown): z.ZodType | null {
  const plain = bare(schema)
  const { type, options = [] } = definitionOf(plain)
  if (type === 'object') return plain
  const kind = (value as { kind?: unknown } | null | undefined)?.kind
  return options.find((option) => definitionOf(option).type === 'object' && shapeOf(option)['kind']?.safeParse(kind).success) ?? null
}

/** Keys that are allowed at `path`. */
function keysAt(tree: unknown, path: Path): string[] {
  let schema: z.ZodType = ServeConfig
  for (const [depth, key] of path.entries()) {
    const plain = bare(schema)
    const { valueType } = definitionOf(plain)
    const next = valueType ?? shapeOf(objectSchema(plain, valueAt(tree, path.slice(0, depth))) ?? ServeConfig)[String(key)]
    if (!next) return []
    schema = next
  }
  const found = objectSchema(schema, valueAt(tree, path))
  return found ? Object.keys(shapeOf(found)) : []
}

function toSentences(issue: z.core.$ZodIssue, tree: unknown): string[] {
  if (issue.code === 'unrecognized_keys') {
    const keys = keysAt(tree, issue.path)
    return issue.keys.map((key) => `"${[...issue.path, key].join('.')}" is no key of the configuration.${didYouMean(key, keys)}`)
  }
  return [describeIssue(issue, valueAt(tree, issue.path))]
}

/** Sections that only rollouts read. */
const ofRollouts = ['reward', 'limits', 'executor', 'evaluation'] as const

/** Checks a configuration. Throws CONFIG_INVALID with every problem; an unknown key is one, with a suggestion. */
export function parseServeConfig(value: unknown, file: string): ServeConfig {
  const parsed = ServeConfig.safeParse(value)
  const problems = (parsed.error?.issues ?? []).flatMap((issue) => toSentences(issue, value))
  if (parsed.success) {
    const { models, defaultModel, aliases, rollouts, recording, clients } = parsed.data
    const modelNames = Object.keys(models)
    for (const [key, name] of [['defaultModel', defaultModel], ...Object.entries(aliases).map(([alias, to]) => [`aliases.${alias}`, to])])
      if (typeof name === 'string' && !modelNames.includes(name))
        problems.push(`"${key}" is "${name}", which is no key of "models".${didYouMean(name, modelNames)}`)
    if (clients && clients.path !== null && clients.key === null)
      problems.push('"clients.path" needs "clients.key": a URL that can be guessed is open to every program that reaches it.')
    if (rollouts && recording === null)
      problems.push('"rollouts" needs "recording": what is finished is kept there, so that it survives a restart.')
    for (const key of ofRollouts)
      if (!rollouts && isTree(value) && value[key] !== undefined)
        problems.push(`"${key}" is of "rollouts", which this configuration does not have; add them, or leave it out.`)
    const channels = modelNames.filter((name) => models[name]?.kind === 'channel')
    if (channels.length > 1)
      problems.push(`"models" has ${channels.length} of kind channel (${channels.join(', ')}); one trainer drives one policy.`)
    if (channels.length > 0 && !rollouts)
      problems.push(`"models.${channels[0]}" is of kind channel, which needs "rollouts": a trainer connects to their port.`)
    if (problems.length === 0) return parsed.data
  }
  throw new TrainError('CONFIG_INVALID', problems.map((problem) => `${file}: ${problem}`).join('\n'), { details: { problems } })
}

/** Reads the file of `serve --config`, YAML or JSON. Throws CONFIG_INVALID. */
export function readServeConfig(file: string): ServeConfig {
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (cause) {
    const reason = errorMessage(cause)
    throw new TrainError('CONFIG_INVALID', `${file} cannot be read: ${reason}; correct the path after --config.`, { cause })
  }
  const document = parseDocument(text)
  const [error] = document.errors
  if (error) throw new TrainError('CONFIG_INVALID', `${file} is neither YAML nor JSON: ${error.message}`, { cause: error })
  return parseServeConfig(document.toJS() ?? {}, file)
}

/**
 * Reads the key of plain clients. Throws CONFIG_INVALID as `readSecret` does, and for a key that is too short or that a header cannot
 * carry.
 */
export function readClientKey(secret: Secret, what: string, directory: string): string {
  const key = readSecret(secret, what, directory)
  const problem = keyProblem(key)
  if (problem) throw new TrainError('CONFIG_INVALID', `${what} ${problem}.`)
  return key
}

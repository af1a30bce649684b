import type { ChatModel } from '@aworld-train/chat'
import { didYouMean, type Message, type SessionRequest, TrainError } from '@aworld-train/core'
import { shorten } from '../failure.ts'
import { createToolAnswerCutter } from '../stages/cut-tool-answers.ts'
import type { ChatRoute, FrozenRoute, ModelRoute, TokenRoute } from './routes.ts'

/** A route, under the name that agents ask for. */
export interface TokenModel extends Omit<TokenRoute, 'chat'> {
  readonly name: string
  /** The getter throws the error of its route until the model is ready. */
  readonly chat: ChatModel
  /** Warnings about its template, known at the start. */
  readonly historyNotes: readonly string[]
  /** Shortens tool answers in the messages to the limit of the route. */
  readonly cutToolAnswers: (messages: readonly Message[]) => readonly Message[]
}
export type ChatModelRoute = ChatRoute & { readonly name: string }
export type FrozenModel = FrozenRoute & { readonly name: string }
export type Model = TokenModel | ChatModelRoute | FrozenModel

export interface ModelTableOptions {
  readonly models: Readonly<Record<string, ModelRoute>>
  readonly defaultModel?: string | undefined
  readonly aliases?: Readonly<Record<string, string>> | undefined
}

type AgentRequest = SessionRequest['agents'][number]

/** The models of a gateway by name. */
export interface ModelTable {
  readonly all: readonly Model[]
  /** The model of requests that name none. */
  readonly standard: Model
  /**
   * The model of a session's agent, for requests that name no other. The alias `*` never resolves a model that the session
   * names. Throws GATEWAY_MODEL_UNKNOWN.
   */
  home(request: SessionRequest, agent: AgentRequest): Model
  /** Whether a model has this name or alias. The alias `*` does not count. */
  isNamed(name: string): boolean
  /** The model that a request's `model` field names, by name or alias. Throws GATEWAY_MODEL_UNKNOWN. */
  find(name: string): Model
  /** The model with this name or alias, for requests about a model. The alias `*` does not count. Throws GATEWAY_MODEL_UNKNOWN. */
  listed(name: string): Model
  /** Whether every model takes token ids. Then every request is parsed anyway, and its model is read from that. */
  readonly onlyTokens: boolean
  /** Weight version of the default model; 0 if that is a third party's. */
  weightVersion(): number
  /** Says that no more calls with this affinity come. */
  forget(affinity: string): void
}

function toTokenModel(name: string, { chat, ...route }: TokenRoute): TokenModel {
  const { toolAnswers = { maxTokens: null, cut: 'middle' } } = route
  const cutToolAnswers = createToolAnswerCutter(toolAnswers, () => (typeof chat === 'function' ? chat() : chat))
  if (typeof chat !== 'function') return { ...route, name, chat, cutToolAnswers, historyNotes: chat.historyNotes }
  return {
    ...route,
    name,
    cutToolAnswers,
    get chat() {
      return chat()
    },
    historyNotes: [],
  }
}

function toModel(name: string, route: ModelRoute): Model {
  return route.kind === 'token' ? toTokenModel(name, route) : { ...route, name }
}

function unknownModel(message: string): TrainError {
  return new TrainError('GATEWAY_MODEL_UNKNOWN', shorten(message), { details: { param: 'model' } })
}

/** Throws CONFIG_INVALID if there is no model, or if the default or an alias names no model. */
export function createModelTable({ models, defaultModel, aliases = {} }: ModelTableOptions): ModelTable {
  const byName = new Map(Object.entries(models).map(([name, route]) => [name, toModel(name, route)]))
  const modelNames = () => Array.from(byName.keys(), (name) => `"${name}"`).join(', ')
  const require = (name: string, what: string): Model => {
    const model = byName.get(name)
    if (!model)
      throw new TrainError('CONFIG_INVALID', `${what} is "${name}", which is no model of this gateway; its models are ${modelNames()}.`)
    return model
  }
  const first = byName.values().next().value
  if (!first) throw new TrainError('CONFIG_INVALID', 'The gateway has no model; give it at least one in "models".')
  const standard = defaultModel === undefined ? first : require(defaultModel, 'defaultModel')
  const targets = new Map(Object.entries(aliases).map(([alias, name]) => [alias, require(name, `Alias "${alias}"`)]))

  const wildcard = targets.get('*')
  targets.delete('*')
  const named = (name: string) => byName.get(name) ?? targets.get(name)

  const find = (name: string): Model => {
    const model = named(name) ?? wildcard
    if (model) return model
    const remedy = `${didYouMean(name, byName.keys())} Ask for one of them, or map the name in "aliases" ("*" for any name).`
    throw unknownModel(`There is no model "${name}" here; the models are ${modelNames()}.${remedy}`)
  }

  const listed = (name: string): Model => {
    const model = named(name)
    if (model) return model
    throw unknownModel(`There is no model "${name}" here; the models are ${modelNames()}.${didYouMean(name, byName.keys())}`)
  }

  // "*" is for model names in the code of agents. A name that the session itself gives must be right.
  const declared = (agent: string, name: string): Model => {
    const model = named(name)
    if (model) return model
    const remedy = `${didYouMean(name, byName.keys())} Correct its name, or add it to the gateway's models.`
    throw unknownModel(`Agent "${agent}" is declared with model "${name}", which is none of ${modelNames()}.${remedy}`)
  }

  return {
    all: [...byName.values()],
    standard,
    onlyTokens: [...byName.values()].every(({ kind }) => kind === 'token'),
    home: ({ policy }, { name, model }) => (model === undefined ? (byName.get(policy) ?? standard) : declared(name, model)),
    isNamed: (name) => named(name) !== undefined,
    find,
    listed,
    weightVersion: () => (standard.kind === 'frozen' ? 0 : standard.engine.weightVersion()),
    forget(affinity) {
      for (const model of byName.values()) if (model.kind !== 'frozen') model.engine.forget?.(affinity)
    },
  }
}

/**
 * Chooses the model that serves a call of `agent`. `requested` is the model of its request, if any; the name of the agent means its own model,
 * unless a model has that name. Throws GATEWAY_MODEL_UNKNOWN.
 */
export function chooseModel(
  models: ModelTable,
  { name, fixed, home }: { readonly name: string; readonly fixed: boolean; readonly home: Model },
  requested?: string,
): Model {
  const isOwn = requested === undefined || (requested === name && !models.isNamed(requested))
  return fixed || isOwn ? home : models.find(requested)
}

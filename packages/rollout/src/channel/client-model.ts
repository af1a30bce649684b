import { join } from 'node:path'
import { type ChatModel, loadChatModel } from '@aworld-train/chat'
import { type ChannelHello, type ModelDescription, stableStringify, TrainError } from '@aworld-train/core'
import type { ChannelEngineOptions, EngineLink } from './channel-types.ts'
import { checkRendering } from './check-rendering.ts'
import { filesHash, isFolder, writeModelFiles } from './model-files.ts'

/** The model that trainer clients train: unknown until one says hello, then the same for all connected trainer clients. */
export interface ClientModel extends Pick<EngineLink, 'needsFiles' | 'keepFiles' | 'check'> {
  /** Zeros and no stop token before the first trainer client. */
  description(): ModelDescription
  /** Throws POLICY_UNAVAILABLE before the first trainer client. */
  chat(): ChatModel
  /** Why there is no model yet; `null` where there is one. */
  missing(): string | null
}

/** Facts of the model that must be equal in the hellos of all connected trainer clients. */
interface ModelIdentity {
  readonly vocabularySize: number
  readonly stopTokenIds: readonly number[]
  readonly templateArguments: Readonly<Record<string, unknown>>
  readonly contextLength: number
}

interface LoadedModel extends ModelIdentity {
  readonly directory: string
  readonly chat: ChatModel
}

const identityOf = ({ model, check, limits }: ChannelHello): ModelIdentity => ({
  vocabularySize: model.vocabularySize,
  stopTokenIds: [...model.stopTokenIds].sort((a, b) => a - b),
  templateArguments: check.templateArguments,
  contextLength: limits.contextLength ?? limits.maxPromptTokens + limits.maxResponseTokens,
})

const labels: Readonly<Record<keyof ModelIdentity, string>> = {
  vocabularySize: 'the size of its vocabulary',
  stopTokenIds: 'its stop tokens',
  templateArguments: 'the arguments of its template',
  contextLength: 'its context length',
}

export function createClientModel({
  name,
  directory,
  filesDirectory = null,
  history,
  onWarning,
  onModel,
}: ChannelEngineOptions): ClientModel {
  if (directory === null && filesDirectory === null) {
    throw new TrainError(
      'CONFIG_INVALID',
      `Model "${name}" has neither a folder nor a place for the files of its trainer; give one of them.`,
    )
  }
  let loaded: LoadedModel | null = null
  /** One load at a time: workers of a trainer client say hello together. */
  let loading: Promise<unknown> = Promise.resolve()

  const directoryOf = ({ tokenizerHash }: ChannelHello) => directory ?? join(filesDirectory!, encodeURIComponent(tokenizerHash))

  /** Whether the model of `hello` is the one that is served; throws MODEL_MISMATCH where it is not and other trainer clients use the served one. */
  function isServed(hello: ChannelHello, isBound: boolean): boolean {
    if (!loaded) return false
    const identity = identityOf(hello)
    const different = (Object.keys(labels) as (keyof ModelIdentity)[]).filter(
      (key) => stableStringify(identity[key]) !== stableStringify(loaded![key]),
    )
    const sameFiles = loaded.directory === directoryOf(hello)
    if (sameFiles && different.length === 0) return true
    if (!isBound) return false
    const values = different.map((key) => `${labels[key]}: ${show(identity[key])} in place of ${show(loaded![key])}`)
    throw mismatch(hello, [...(sameFiles ? [] : ['the files of its tokenizer']), ...values].join('; '))
  }

  function mismatch({ model }: ChannelHello, what: string): TrainError {
    const message = `The trainer's model "${model.name}" is not the one that "${name}" serves for another trainer or worker; different: ${what}. End that one first, or start a rollout service of its own.`
    return new TrainError('MODEL_MISMATCH', message)
  }

  async function load(hello: ChannelHello, isBound: boolean): Promise<LoadedModel> {
    if (isServed(hello, isBound)) return loaded!
    const identity = identityOf(hello)
    const { stopTokenIds, templateArguments } = identity
    const folder = directoryOf(hello)
    const chat = await loadChatModel({ directory: folder, stopTokenIds, history, templateArguments })
    return { ...identity, directory: folder, chat }
  }

  return {
    description() {
      const { vocabularySize = 0, stopTokenIds = [], contextLength = 0 } = loaded ?? {}
      return { name, directory: loaded?.directory ?? directory ?? '', vocabularySize, stopTokenIds, contextLength }
    },
    chat() {
      if (loaded) return loaded.chat
      throw new TrainError('POLICY_UNAVAILABLE', `Model "${name}" is not known yet: no trainer has connected. Try again when one has.`)
    },
    missing: () => (loaded ? null : 'no trainer has said yet which model it is'),
    async needsFiles(hello, isBound) {
      isServed(hello, isBound)
      return directory === null && !(await isFolder(directoryOf(hello)))
    },
    async keepFiles(hello, files) {
      const hash = filesHash(files)
      if (hash !== hello.tokenizerHash) {
        const message = `The tokenizer's files of the trainer have the hash ${hash}, its hello says ${hello.tokenizerHash}; use the same version on both sides.`
        throw new TrainError('MODEL_MISMATCH', message)
      }
      await writeModelFiles(directoryOf(hello), files)
    },
    async check(hello, renderedIds, isBound) {
      const result = loading.then(async () => {
        const candidate = await load(hello, isBound())
        checkRendering(candidate.chat, hello.check, renderedIds)
        if (loaded === candidate) return
        await onModel?.(candidate.directory)
        loaded = candidate
        for (const message of candidate.chat.historyNotes) onWarning?.({ code: 'TEMPLATE_REWRITES', message })
      })
      loading = result.catch(() => {})
      await result
    },
  }
}

const show = (value: unknown) => JSON.stringify(value)

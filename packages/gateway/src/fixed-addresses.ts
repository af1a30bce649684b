import { type FixedAddress, TrainError } from '@aworld-train/core'
import { createSecretCheck } from '@aworld-train/http'

/** Addresses that survive a restart, each opened by its key: `/{path}/v1`, or `/v1` if the path is empty. */
export interface FixedAddresses<Value> {
  /** Adds an address and returns the function that removes it. Throws CONFIG_INVALID for an invalid path or key, and for a path that is in use. */
  grant(address: FixedAddress, value: Value): () => void
  /** Returns the value at an address; `undefined` if there is none. Throws SERVICE_UNAUTHORIZED for a wrong key. */
  find(path: string, key: string | null): Value | undefined
}

/** First parts of the gateway's own paths. */
const reservedPaths: ReadonlySet<string> = new Set(['v1', 'r', 'health', 'ready', 'metrics'])

const minKeyLength = 16

/** Why a path cannot be one part of a URL; `null` where it can. */
export function pathProblem(path: string): string | null {
  if (!/^[A-Za-z0-9_-]{0,128}$/.test(path)) return 'must be one part of a URL: at most 128 letters, digits, "_" and "-"'
  return reservedPaths.has(path) ? `must be another than ${[...reservedPaths].join(', ')}, which the gateway has for itself` : null
}

/** Why a header cannot carry a key; `null` where it can. */
export function keyProblem(key: string): string | null {
  if (key.length < minKeyLength) return `is shorter than ${minKeyLength} characters; take a random one`
  return /^[\x21-\x7e]+$/.test(key) ? null : 'has characters that no header carries; take letters and digits, without spaces'
}

export function createFixedAddresses<Value>(): FixedAddresses<Value> {
  const entries = new Map<string, { readonly isKey: (key: string) => boolean; readonly value: Value }>()
  return {
    grant({ path, key }, value) {
      const problem = pathProblem(path) ?? (entries.has(path) ? 'is the address of another session' : null)
      if (problem) throw new TrainError('CONFIG_INVALID', `The path of an address, "${path.slice(0, 200)}", ${problem}.`)
      const wrong = keyProblem(key)
      if (wrong) throw new TrainError('CONFIG_INVALID', `The key of an address ${wrong}.`)
      entries.set(path, { isKey: createSecretCheck(key), value })
      return () => void entries.delete(path)
    },
    find(path, key) {
      const entry = entries.get(path)
      if (!entry) return undefined
      if (key !== null && entry.isKey(key)) return entry.value
      const message = 'The key is missing or wrong; send the one of this address as "Authorization: Bearer …" or as x-api-key.'
      throw new TrainError('SERVICE_UNAUTHORIZED', message)
    },
  }
}

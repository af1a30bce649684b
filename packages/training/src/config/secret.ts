import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { errorMessage, TrainError } from '@aworld-train/core'
import { z } from 'zod'

/** A secret: written in the configuration or, better, kept in an environment variable or in a file of its own. */
export const Secret = z.union([z.string().min(1), z.strictObject({ env: z.string().min(1) }), z.strictObject({ file: z.string().min(1) })])
export type Secret = z.infer<typeof Secret>

/** Reads a secret of the configuration. Throws CONFIG_INVALID if its environment variable is not set or its file is empty. */
export function readSecret(secret: Secret, what: string, directory: string): string {
  if (typeof secret === 'string') return secret
  if ('file' in secret) return readSecretFile(resolve(directory, secret.file), what)
  const value = process.env[secret.env]
  if (value) return value
  throw new TrainError('CONFIG_INVALID', `${what} is to be read from ${secret.env}, which is not set; set it, or name another variable.`)
}

/** Makes a bearer token of 256 random bits. */
export const randomToken = (): string => randomBytes(32).toString('base64url')

/** Reads a token of the configuration, or makes a random one if the configuration has none. */
export const readToken = (token: Secret | null, what: string, directory: string): string =>
  token === null ? randomToken() : readSecret(token, what, directory)

function readSecretFile(file: string, what: string): string {
  try {
    const value = readFileSync(file, 'utf8').trim()
    if (value !== '') return value
  } catch (cause) {
    const reason = errorMessage(cause)
    throw new TrainError('CONFIG_INVALID', `${what} cannot be read: ${reason}; correct its path.`, { cause })
  }
  throw new TrainError('CONFIG_INVALID', `${what} is to be read from ${file}, which is empty; write the secret into it.`)
}

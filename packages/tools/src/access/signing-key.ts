import { createPrivateKey, generateKeyPairSync, type KeyObject } from 'node:crypto'
import { mkdirSync, readFileSync, type Stats, statSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { errorMessage, TrainError } from '@aworld-train/core'

/**
 * Reads the Ed25519 key that signs tokens from a PEM file, which is created if missing; without a path, makes a key of this process. Throws
 * CONFIG_INVALID for a file that others can read, or that holds no such key.
 */
export function readSigningKey(path: string | undefined): KeyObject {
  if (path === undefined) return generateKeyPairSync('ed25519').privateKey
  mkdirSync(dirname(path), { recursive: true })
  try {
    const { privateKey } = generateKeyPairSync('ed25519')
    writeFileSync(path, privateKey.export({ type: 'pkcs8', format: 'pem' }), { mode: 0o600, flag: 'wx' })
    return privateKey
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== 'EEXIST') throw unusable(path, cause)
  }
  // Windows has no such permission bits.
  if (process.platform !== 'win32' && isReadByOthers(statSync(path)))
    throw new TrainError('CONFIG_INVALID', `Others can read the key in ${path}, and could sign tokens of their own; run "chmod 600" on it.`)
  try {
    const key = createPrivateKey(readFileSync(path))
    if (key.asymmetricKeyType === 'ed25519') return key
  } catch (cause) {
    throw unusable(path, cause)
  }
  throw unusable(path, new Error('it is of another kind'))
}

/** Another user's file, such as a mounted secret, is read by the rights of a group. */
const isReadByOthers = ({ uid, mode }: Stats) => (mode & (uid === process.getuid?.() ? 0o077 : 0o037)) !== 0

function unusable(path: string, cause: unknown): TrainError {
  const reason = errorMessage(cause)
  return new TrainError(
    'CONFIG_INVALID',
    `${path} holds no Ed25519 key in PEM: ${reason}. Delete it, and the next start makes a new one.`,
    {
      cause,
    },
  )
}

import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { TrainError } from '@aworld-train/core'
import type { TlsIdentity } from '@aworld-train/http'
import type { TlsFiles } from '../config/listener.ts'

/** Reads a certificate and its key. Throws CONFIG_INVALID naming the file that cannot be read. */
export function readTls(tls: TlsFiles | null, directory: string): TlsIdentity | undefined {
  if (tls === null) return undefined
  const read = (name: 'cert' | 'key') => {
    const file = resolve(directory, tls[name])
    try {
      return readFileSync(file)
    } catch (cause) {
      throw new TrainError('CONFIG_INVALID', `tls.${name} cannot be read: ${cause instanceof Error ? cause.message : cause}.`, { cause })
    }
  }
  return { cert: read('cert'), key: read('key') }
}

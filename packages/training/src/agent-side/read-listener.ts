import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { TrainError } from '@aworld-train/core'
import type { GatewayOptions } from '@aworld-train/gateway'
import type { TlsIdentity } from '@aworld-train/http'
import type { TlsFiles } from '../config/listener.ts'
import type { LocalConfig } from '../config/local-config.ts'

/** The address that a server of ours listens on, and the one that others reach it by. */
export type Listener = Pick<GatewayOptions, 'host' | 'tls' | 'insecure' | 'publicUrl'>

/** Reads the settings of a listener and its certificate. Throws CONFIG_INVALID naming the file that cannot be read. */
export const readListener = (
  { host, tls, insecure, publicUrl }: Pick<LocalConfig['gateway'], 'host' | 'tls' | 'insecure' | 'publicUrl'>,
  directory: string,
): Listener => ({
  host,
  tls: tls === null ? undefined : readTls(tls, directory),
  insecure,
  ...(publicUrl !== null && { publicUrl }),
})

function readTls(tls: TlsFiles, directory: string): TlsIdentity {
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

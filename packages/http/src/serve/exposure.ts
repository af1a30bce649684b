import { isIPv4 } from 'node:net'
import { TrainError } from '@aworld-train/core'

export interface Exposure {
  /** The server's name in messages, such as "The gateway". */
  readonly what: string
  readonly host: string
  readonly tls: boolean
  /** Whether the user allows plain HTTP to leave this machine. */
  readonly insecure: boolean
}

/** Whether only this machine reaches a server on `host`. A name other than `localhost` may resolve to anything. */
export function isLoopback(host: string): boolean {
  const plain = host.replace(/^\[|\]$/g, '').toLowerCase()
  return plain === 'localhost' || plain === '::1' || (isIPv4(plain) && plain.startsWith('127.'))
}

/** Throws CONFIG_INVALID for a server that other machines reach without encryption, unless the user allows it. */
export function checkExposure({ what, host, tls, insecure }: Exposure): void {
  if (tls || insecure || isLoopback(host)) return
  throw new TrainError(
    'CONFIG_INVALID',
    `${what} would answer on ${host} without encryption: prompts and tokens could be read on the way. Listen on 127.0.0.1, give tls.cert and tls.key, or set insecure: true where the network is trusted.`,
  )
}

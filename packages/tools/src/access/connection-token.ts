import { toolScopes } from '../tool-server.ts'
import { readSigningKey } from './signing-key.ts'
import { createTokens, leasesScope, type TokenClaims } from './tokens.ts'

/** Claims of a connection: it may open leases, and call every tool without one. */
export function connectionClaims(lifetimeMs: number): TokenClaims {
  return { subject: 'connection', id: 'connection', scopes: [leasesScope, ...toolScopes], lifetimeMs }
}

/** Makes another connection token for `url`, the address of a server or of several, whose key is in `keyFile`. Throws as `readSigningKey` does. */
export const mintConnectionToken = (keyFile: string, url: string, lifetimeMs: number): Promise<string> =>
  createTokens(readSigningKey(keyFile), url).mint(connectionClaims(lifetimeMs))

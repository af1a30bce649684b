import { toolScopes } from '../tool-server.ts'
import { readSigningKey } from './signing-key.ts'
import { controlScope, createTokens, leasesScope, netScope, type TokenClaims, watchScope } from './tokens.ts'

/** Claims of a connection: it may open leases, call every tool without one, and use every desktop. */
export function connectionClaims(lifetimeMs: number): TokenClaims {
  return { subject: 'connection', id: 'connection', scopes: [leasesScope, ...toolScopes, netScope, watchScope, controlScope], lifetimeMs }
}

/** Makes another connection token for `url`, the address of a server or of several, whose key is in `keyFile`. Throws as `readSigningKey` does. */
export const mintConnectionToken = (keyFile: string, url: string, lifetimeMs: number): Promise<string> =>
  createTokens(readSigningKey(keyFile), url).mint(connectionClaims(lifetimeMs))

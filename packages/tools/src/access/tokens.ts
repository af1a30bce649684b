import { createPublicKey, type KeyObject } from 'node:crypto'
import { type AuthInfo, OAuthError, OAuthErrorCode, type OAuthTokenVerifier } from '@modelcontextprotocol/server'
import { jwtVerify, SignJWT } from 'jose'
import { z } from 'zod'

const issuer = 'aworld-train-environment'
const skewSeconds = 30
const longestToken = 4_096

/** Scope for opening leases and calling tools without one. A rollout's token never has it. */
export const leasesScope = 'leases'

/** Scope of a lease whose commands reach the web. */
export const netScope = 'net'
/** Scope for watching the desktop of a lease. */
export const watchScope = 'desktop'
/** Scope for using its keyboard and mouse. A rollout's token never has it. */
export const controlScope = 'desktop-control'

/** Longest life of a rollout's token. */
export const longestLeaseMs = 3_600_000

export interface TokenClaims {
  /** Rollout and attempt of the token. */
  readonly subject: string
  /** Id of the lease that it opens. */
  readonly id: string
  /** Families of tools, `leases`, and those of desktops. */
  readonly scopes: readonly string[]
  readonly lifetimeMs: number
}

export interface Tokens extends OAuthTokenVerifier {
  mint(claims: TokenClaims): Promise<string>
}

/**
 * Tokens of one server: Ed25519 signatures over claims. A rollout's token is valid only for `audience`, the server's URL, and a connection
 * token for `shared`, which several servers with one key may have in common.
 */
export function createTokens(key: KeyObject, audience: string, shared: string = audience): Tokens {
  const publicKey = createPublicKey(key)
  const audienceOf = (scopes: readonly string[]) => (scopes.includes(leasesScope) ? shared : audience)
  const Claims = z
    .strictObject({
      iss: z.literal(issuer),
      aud: z.string(),
      sub: z.string().min(1),
      jti: z.string().min(1),
      scope: z.string(),
      iat: z.int(),
      exp: z.int(),
      nbf: z.int().optional(),
    })
    .refine(({ aud, scope }) => aud === audienceOf(scope.split(' ')))
    .refine(({ iat, exp }) => iat <= Date.now() / 1_000 + skewSeconds && exp > Date.now() / 1_000)
    .refine(({ scope, iat, exp }) => scope.split(' ').includes(leasesScope) || (exp - iat) * 1_000 <= longestLeaseMs)

  async function verify(token: string): Promise<AuthInfo> {
    if (token.length > longestToken) throw new Error('too long')
    const { payload } = await jwtVerify(token, publicKey, { algorithms: ['EdDSA'], issuer, clockTolerance: skewSeconds })
    // JSON that has a claim twice could be read in two ways.
    const text = Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()
    if (JSON.stringify(payload) !== text) throw new Error('not the JSON of what it says')
    const { sub, jti, scope, exp } = Claims.parse(payload)
    // The reader of this has its own answer for an expired token, which was refused above.
    const expiresAt = exp + skewSeconds
    return { token, clientId: sub, scopes: scope.split(' '), expiresAt, resource: new URL(audience), extra: { lease: jti } }
  }

  return {
    mint({ subject, id, scopes, lifetimeMs }) {
      const issuedAt = Math.floor(Date.now() / 1_000)
      return new SignJWT({ scope: scopes.join(' ') })
        .setProtectedHeader({ alg: 'EdDSA' })
        .setIssuer(issuer)
        .setAudience(audienceOf(scopes))
        .setSubject(subject)
        .setJti(id)
        .setIssuedAt(issuedAt)
        .setExpirationTime(issuedAt + Math.ceil(lifetimeMs / 1_000))
        .sign(key)
    },
    // Every problem gets the same answer. An error of another class would be answered with 500.
    verifyAccessToken: (token) => verify(token).catch(() => Promise.reject(invalidToken())),
  }
}

/** The answer to a token that opens nothing, whatever the reason. */
export function invalidToken(): OAuthError {
  return new OAuthError(OAuthErrorCode.InvalidToken, 'The token opens nothing here, or no longer.')
}

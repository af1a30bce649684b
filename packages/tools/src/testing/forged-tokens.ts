import { createHmac, createPublicKey, generateKeyPairSync, type KeyObject, sign } from 'node:crypto'

export interface Parts {
  readonly header?: Record<string, unknown>
  readonly payload?: unknown
  /** Signs the token. Default: the server's own key. */
  readonly by?: (input: Buffer) => Buffer
}

/** Makes valid and invalid tokens of a server. */
export interface Forger {
  readonly key: KeyObject
  readonly audience: string
  /** A token that the server signed for the lease, with changes. */
  token(parts?: Parts): string
  /** Claims as the server writes them, with changes; `undefined` leaves one out. */
  claims(changes?: Record<string, unknown>): Record<string, unknown>
}

const encode = (part: unknown) => Buffer.from(typeof part === 'string' ? part : JSON.stringify(part)).toString('base64url')
const now = () => Math.floor(Date.now() / 1_000)
export const other = generateKeyPairSync('ed25519').privateKey
export const rsa = generateKeyPairSync('rsa', { modulusLength: 2_048 }).privateKey
export const byOther = (input: Buffer) => sign(null, input, other)
const byHmacOf = (secret: string | Buffer) => (input: Buffer) => createHmac('sha256', secret).update(input).digest()

export interface ForgerOptions extends Pick<Forger, 'key' | 'audience'> {
  /** Id of the lease that tokens are for. */
  readonly lease: string
  readonly scope?: string
}

/** A forger for a server whose key and address are known. */
export function forger({ key, audience, lease, scope = 'files' }: ForgerOptions): Forger {
  const claims = (changes: Record<string, unknown> = {}) => ({
    scope,
    iss: 'aworld-train-environment',
    aud: audience,
    sub: 'r1.1',
    jti: lease,
    iat: now(),
    exp: now() + 60,
    ...changes,
  })
  return {
    key,
    audience,
    claims,
    token({ header = {}, payload = claims(), by = (input) => sign(null, input, key) }: Parts = {}) {
      const input = `${encode({ alg: 'EdDSA', ...header })}.${encode(payload)}`
      return `${input}.${by(Buffer.from(input)).toString('base64url')}`
    },
  }
}

/** Tokens that open nothing, by their flaw. */
export const forgeries: Readonly<Record<string, (forger: Forger) => string>> = {
  'no token at all': () => 'x.y.z',
  'alg none, unsigned': ({ token }) => token({ header: { alg: 'none' }, by: () => Buffer.alloc(0) }),
  'alg None, signed': ({ token }) => token({ header: { alg: 'None' } }),
  'HS256 by the public key as PEM': ({ token, key }) =>
    token({ header: { alg: 'HS256' }, by: byHmacOf(createPublicKey(key).export({ type: 'spki', format: 'pem' })) }),
  'HS256 by the bytes of the public key': ({ token, key }) =>
    token({ header: { alg: 'HS256' }, by: byHmacOf(createPublicKey(key).export({ type: 'spki', format: 'der' })) }),
  'RS256 by a key of its own': ({ token }) => token({ header: { alg: 'RS256' }, by: (input) => sign('sha256', input, rsa) }),
  'an alg that is no string': ({ token }) => token({ header: { alg: ['EdDSA'] } }),
  'another key': ({ token }) => token({ by: byOther }),
  'another key, by a kid that climbs': ({ token }) => token({ header: { kid: '../../../../../../dev/null' }, by: byOther }),
  'another key, carried in the header': ({ token }) =>
    token({ header: { jwk: createPublicKey(other).export({ format: 'jwk' }) }, by: byOther }),
  'a header that must be understood': ({ token }) => token({ header: { crit: ['http://example.com/x'], 'http://example.com/x': true } }),
  'no signature': ({ token }) => token({ by: () => Buffer.alloc(0) }),
  'the signature of other claims': ({ token, claims }) =>
    [...token().split('.').slice(0, 1), encode(claims({ sub: 'r2.1' })), token().split('.')[2]].join('.'),
  'a part too many': ({ token }) => `${token()}.x`,
  expired: ({ token, claims }) => token({ payload: claims({ iat: now() - 120, exp: now() - 60 }) }),
  'expired a moment ago': ({ token, claims }) => token({ payload: claims({ iat: now() - 120, exp: now() - 1 }) }),
  'no end': ({ token, claims }) => token({ payload: claims({ exp: undefined }) }),
  'an end that is a string': ({ token, claims }) => token({ payload: claims({ exp: String(now() + 60) }) }),
  'an end without end': ({ token, claims }) => token({ payload: JSON.stringify(claims()).replace(/"exp":\d+/, '"exp":1e999') }),
  'an end in more than an hour': ({ token, claims }) => token({ payload: claims({ exp: now() + 3_700 }) }),
  'a beginning in the future': ({ token, claims }) => token({ payload: claims({ nbf: now() + 120 }) }),
  'signed in the future': ({ token, claims }) => token({ payload: claims({ iat: now() + 120, exp: now() + 180 }) }),
  'another audience': ({ token, claims }) => token({ payload: claims({ aud: 'http://127.0.0.1:1/mcp' }) }),
  'an audience with more behind it': ({ token, claims, audience }) => token({ payload: claims({ aud: `${audience}/` }) }),
  'audiences, ours among them': ({ token, claims, audience }) => token({ payload: claims({ aud: [audience, 'http://example.com/'] }) }),
  'no audience': ({ token, claims }) => token({ payload: claims({ aud: undefined }) }),
  'another issuer': ({ token, claims }) => token({ payload: claims({ iss: 'someone' }) }),
  'no subject': ({ token, claims }) => token({ payload: claims({ sub: undefined }) }),
  'a lease that is a number': ({ token, claims }) => token({ payload: claims({ jti: 7 }) }),
  'a lease that there is not': ({ token, claims }) => token({ payload: claims({ jti: '00000000-0000-4000-8000-000000000000' }) }),
  'a claim twice': ({ token, claims }) => token({ payload: JSON.stringify(claims()).replace('"jti"', '"jti":"x","jti"') }),
  'a claim more': ({ token, claims }) => token({ payload: claims({ admin: true }) }),
  'claims in a list': ({ token, claims }) => token({ payload: [claims()] }),
  'claims that are no JSON': ({ token }) => token({ payload: '{' }),
  'huge claims': ({ token, claims }) => token({ payload: claims({ sub: 'r'.repeat(9_000) }) }),
}

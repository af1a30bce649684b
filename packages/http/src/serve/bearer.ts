import { createHash, timingSafeEqual } from 'node:crypto'

const digest = (text: string) => createHash('sha256').update(text).digest()

/** A check against one secret, whose duration does not reveal how much of the candidate was right. */
export function createSecretCheck(secret: string): (candidate: string) => boolean {
  const expected = digest(secret)
  return (candidate) => timingSafeEqual(digest(candidate), expected) && candidate !== ''
}

/** A check of `Authorization: Bearer …` against one token. */
export function createBearerCheck(token: string): (authorization: string | undefined) => boolean {
  const isToken = createSecretCheck(token)
  return (authorization) => isToken(authorization?.slice(0, 7).toLowerCase() === 'bearer ' ? authorization.slice(7).trim() : '')
}

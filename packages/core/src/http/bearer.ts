import { createHash, timingSafeEqual } from 'node:crypto'

const digest = (text: string) => createHash('sha256').update(text).digest()

/** A check of `Authorization: Bearer …` against one token, in a time that says nothing of how much of it was right. */
export function createBearerCheck(token: string): (authorization: string | undefined) => boolean {
  const expected = digest(token)
  return (authorization) => {
    const given = authorization?.slice(0, 7).toLowerCase() === 'bearer ' ? authorization.slice(7).trim() : ''
    return timingSafeEqual(digest(given), expected) && given !== ''
  }
}

import { randomBytes } from 'node:crypto'

/** 192 random bits for a bearer token. */
export const randomToken = (): string => randomBytes(24).toString('base64url')

import { z } from 'zod'

export const TlsFiles = z.strictObject({
  cert: z.string().min(1).describe('File with the certificate chain, in PEM.'),
  key: z.string().min(1).describe('File with its private key, in PEM and without a passphrase.'),
})
export type TlsFiles = z.infer<typeof TlsFiles>

/** The address by which others reach a server of ours, if it differs from the one that the server listens on. */
export const PublicUrl = z.string().regex(/^https?:\/\/[^/]+$/, 'must be http:// or https:// with a host and no path')

export const Port = z.int().min(0).max(65_535)

/** The longest time that a Node timer accepts; with a longer one it fires at once. */
export const longestMs = 2 ** 31 - 1

import { z } from 'zod'

export const TlsFiles = z.strictObject({
  /** File with the certificate chain in PEM. */
  cert: z.string().min(1),
  /** File with its key in PEM, without a passphrase. */
  key: z.string().min(1),
})
export type TlsFiles = z.infer<typeof TlsFiles>

/** The address of a server of ours as others reach it, where it differs from the one that it listens on. */
export const PublicUrl = z.string().regex(/^https?:\/\/[^/]+$/, 'must be http:// or https:// with a host and no path')

// The library of certificates injects its parts by this.
import 'reflect-metadata'
import { KeyObject, webcrypto } from 'node:crypto'
import { X509CertificateGenerator } from '@peculiar/x509'

/** A certificate that nobody vouches for, and its key. */
export async function selfSigned(): Promise<{ readonly key: string; readonly cert: string }> {
  const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' }
  const keys = await webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify'])
  const certificate = await X509CertificateGenerator.createSelfSigned({ name: 'CN=pages.test', keys, signingAlgorithm: algorithm })
  const key = KeyObject.from(keys.privateKey).export({ type: 'pkcs8', format: 'pem' })
  return { key: String(key), cert: certificate.toString('pem') }
}

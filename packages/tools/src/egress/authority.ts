// The library of certificates injects its parts by this.
import 'reflect-metadata'
import { createHash, KeyObject, randomBytes, webcrypto } from 'node:crypto'
import { isIP } from 'node:net'
import { createSecureContext, type SecureContext } from 'node:tls'
import {
  AuthorityKeyIdentifierExtension,
  BasicConstraintsExtension,
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  KeyUsageFlags,
  KeyUsagesExtension,
  SubjectAlternativeNameExtension,
  SubjectKeyIdentifierExtension,
  X509CertificateGenerator,
} from '@peculiar/x509'

/** A certificate authority that lives as long as this object. Its keys are in memory alone. */
export interface Authority {
  /** Its certificate in PEM, for programs that are to trust it. */
  readonly certificate: string
  /** Base64 of the SHA-256 of the public key that all its hosts share. */
  readonly spki: string
  /** What a TLS server that stands for a host shows. The latest are kept. */
  contextFor(host: string): Promise<SecureContext>
}

const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const
const name = 'CN=aworld-train egress'
const dayMs = 86_400_000
const maxContexts = 1_000

const serialNumber = () => `01${randomBytes(15).toString('hex')}`

/** Makes a new authority, for a year. */
export async function createAuthority(): Promise<Authority> {
  const makeKeys = () => webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify'])
  const [keys, hostKeys] = await Promise.all([makeKeys(), makeKeys()])
  const validity = { notBefore: new Date(Date.now() - dayMs), notAfter: new Date(Date.now() + 365 * dayMs) }
  const [ownId, hostId] = await Promise.all([keys, hostKeys].map(({ publicKey }) => SubjectKeyIdentifierExtension.create(publicKey)))
  const own = await X509CertificateGenerator.createSelfSigned({
    serialNumber: serialNumber(),
    name,
    keys,
    ...validity,
    signingAlgorithm: algorithm,
    extensions: [
      new BasicConstraintsExtension(true, 0, true),
      new KeyUsagesExtension(KeyUsageFlags.keyCertSign | KeyUsageFlags.cRLSign, true),
      ownId!,
    ],
  })
  const issuerId = await AuthorityKeyIdentifierExtension.create(keys.publicKey)
  const key = KeyObject.from(hostKeys.privateKey).export({ type: 'pkcs8', format: 'pem' })
  const publicKey = KeyObject.from(hostKeys.publicKey).export({ type: 'spki', format: 'der' })
  const contexts = new Map<string, Promise<SecureContext>>()

  async function makeContext(host: string): Promise<SecureContext> {
    const certificate = await X509CertificateGenerator.create({
      serialNumber: serialNumber(),
      subject: name.replace('egress', 'host'),
      issuer: own.subject,
      publicKey: hostKeys.publicKey,
      signingKey: keys.privateKey,
      ...validity,
      signingAlgorithm: algorithm,
      extensions: [
        new SubjectAlternativeNameExtension([{ type: isIP(host) ? 'ip' : 'dns', value: host }]),
        new BasicConstraintsExtension(false),
        new KeyUsagesExtension(KeyUsageFlags.digitalSignature, true),
        new ExtendedKeyUsageExtension([ExtendedKeyUsage.serverAuth]),
        issuerId,
        hostId!,
      ],
    })
    return createSecureContext({ key, cert: certificate.toString('pem') })
  }

  return {
    certificate: `${own.toString('pem')}\n`,
    spki: createHash('sha256').update(publicKey).digest('base64'),
    contextFor(host) {
      const context = contexts.get(host) ?? makeContext(host)
      contexts.delete(host)
      contexts.set(host, context)
      if (contexts.size > maxContexts) contexts.delete(contexts.keys().next().value!)
      return context
    },
  }
}

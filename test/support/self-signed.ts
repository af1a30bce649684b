import { generateKeyPairSync, sign } from 'node:crypto'

/** A DER value: tag, length, content (X.690 section 8.1). */
function der(tag: number, ...parts: readonly Uint8Array[]): Buffer {
  const content = Buffer.concat(parts)
  const { length } = content
  const size = length < 128 ? [length] : length < 256 ? [0x81, length] : [0x82, length >> 8, length & 255]
  return Buffer.concat([Buffer.from([tag, ...size]), content])
}

const sequence = (...parts: readonly Uint8Array[]) => der(0x30, ...parts)
const objectId = (hex: string) => der(0x06, Buffer.from(hex, 'hex'))
const time = (date: Date) => der(0x17, Buffer.from(`${date.toISOString().replace(/[-:T]/g, '').slice(2, 14)}Z`))

const ecdsaWithSha256 = '2a8648ce3d040302'
const commonName = '550403'
const basicConstraints = '551d13'
const subjectAltName = '551d11'
const dayMs = 86_400_000

/** Makes a self-signed certificate for `host` (RFC 5280 section 4.1) with its key. Both are PEM and valid for a day. */
export function selfSigned(host: string): { readonly cert: string; readonly key: string } {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const algorithm = sequence(objectId(ecdsaWithSha256))
  const name = sequence(der(0x31, sequence(objectId(commonName), der(0x0c, Buffer.from(host)))))
  const now = Date.now()
  const extensions = sequence(
    sequence(objectId(basicConstraints), der(0x01, Buffer.of(255)), der(0x04, sequence(der(0x01, Buffer.of(255))))),
    sequence(objectId(subjectAltName), der(0x04, sequence(der(0x82, Buffer.from(host))))),
  )
  const body = sequence(
    der(0xa0, der(0x02, Buffer.of(2))),
    der(0x02, Buffer.of(1)),
    algorithm,
    name,
    sequence(time(new Date(now - dayMs)), time(new Date(now + dayMs))),
    name,
    publicKey.export({ type: 'spki', format: 'der' }),
    der(0xa3, extensions),
  )
  const certificate = sequence(body, algorithm, der(0x03, Buffer.of(0), sign('sha256', body, privateKey)))
  const lines = certificate
    .toString('base64')
    .match(/.{1,64}/g)!
    .join('\n')
  return {
    cert: `-----BEGIN CERTIFICATE-----\n${lines}\n-----END CERTIFICATE-----\n`,
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
  }
}

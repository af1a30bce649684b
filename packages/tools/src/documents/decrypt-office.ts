import { createDecipheriv, hash, timingSafeEqual } from 'node:crypto'
import { fileKind } from './file-kind.ts'
import { readWith, Unreadable } from './unreadable.ts'
import { attribute, tags } from './xml-tags.ts'

/** The streams of a file of Office Open XML with a password ([MS-OFFCRYPTO]). */
interface EncryptedFile {
  readonly info: Buffer
  readonly contents: Buffer
}

interface EncryptedContents {
  readonly size: number
  /** Contents after their size, encrypted. */
  readonly encrypted: Buffer
}

/** Decrypts a file of Office Open XML that has a password, and leaves others. Without the right one it throws an Unreadable that says so. */
export async function withoutPassword(file: string, bytes: Buffer, password: string | null): Promise<Buffer> {
  if (fileKind(bytes) !== 'encrypted') return bytes
  return await readWith(file, 'a file of Office with a password', () => decryptOffice(file, bytes, password))
}

async function decryptOffice(file: string, bytes: Buffer, password: string | null): Promise<Buffer> {
  if (password === null)
    throw new Unreadable(`${file} is protected by a password: pass that as \`password\`, or ask for a copy without one.`)
  const { info, contents } = await openContainer(file, bytes)
  const encryptedContents = { size: Number(contents.readBigUInt64LE(0)), encrypted: contents.subarray(8) }
  const [major, minor] = [info.readUInt16LE(0), info.readUInt16LE(2)]
  const decrypted =
    minor === 2
      ? decryptStandard(info, encryptedContents, password)
      : major === 4 && minor === 4
        ? decryptAgile(info, encryptedContents, password)
        : undefined
  if (decrypted === undefined)
    throw new Unreadable(`${file} is encrypted in a way that is not read here. Ask for a copy without a password.`)
  if (decrypted === null) throw new Unreadable(`The password does not open ${file}; pass the right one as \`password\`.`)
  if (decrypted.toString('latin1', 0, 2) !== 'PK') throw new Error('what is encrypted is no archive')
  return decrypted
}

async function openContainer(file: string, bytes: Buffer): Promise<EncryptedFile> {
  const { CFB } = await import('@e965/xlsx')
  const container = CFB.read(bytes, { type: 'buffer' })
  const stream = (name: string) => {
    const content = CFB.find(container, name)?.content
    if (content === undefined || content.length < 8)
      throw new Unreadable(`${file} is damaged: its stream ${name} is missing. Try another copy.`)
    return Buffer.from(content as Uint8Array)
  }
  return { info: stream('/EncryptionInfo'), contents: stream('/EncryptedPackage') }
}

const uint32 = (value: number) => {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32LE(value)
  return bytes
}

/** Hashes a password as often as the file demands. */
function spin(algorithm: string, salt: Buffer, password: string, times: number): Buffer {
  const digest = (...parts: readonly Buffer[]) => hash(algorithm, Buffer.concat(parts), 'buffer')
  let result = digest(salt, Buffer.from(password, 'utf16le'))
  for (let index = 0; index < times; index += 1) result = digest(uint32(index), result)
  return result
}

/** The first bytes, or all of them and a filler. */
const fit = (bytes: Buffer, length: number) => Buffer.concat([bytes, Buffer.alloc(length, 0x36)]).subarray(0, length)

function decrypt(mode: 'cbc' | 'ecb', key: Buffer, iv: Buffer | null, data: Buffer): Buffer {
  const decipher = createDecipheriv(`aes-${key.length * 8}-${mode}`, key, iv).setAutoPadding(false)
  return Buffer.concat([decipher.update(data.subarray(0, data.length & ~15)), decipher.final()])
}

const isSame = (a: Buffer, b: Buffer) => a.length === b.length && timingSafeEqual(a, b)

const blockKeys = { input: 'fea7d2763b4b9e79', value: 'd7aa0f6d3061344e', key: '146e0be7abacd0d6' }
const segmentBytes = 4_096

/** Office 2010 and later: AES in segments, with what it needs as XML. */
function decryptAgile(info: Buffer, { size, encrypted }: EncryptedContents, password: string): Buffer | null {
  const xml = info.toString('utf8', 8)
  const [[data = ''], [lock = '']] = [tags(xml, 'keyData'), tags(xml, 'encryptedKey')]
  const base64 = (tag: string, name: string) => Buffer.from(attribute(tag, name), 'base64')
  const algorithm = (tag: string) => attribute(tag, 'hashAlgorithm').replace('-', '').toLowerCase()
  const salt = base64(lock, 'saltValue')
  const secret = spin(algorithm(lock), salt, password, Number(attribute(lock, 'spinCount')))
  const keyBytes = Number(attribute(lock, 'keyBits')) / 8
  const unlock = (block: string, name: string) => {
    const key = hash(algorithm(lock), Buffer.concat([secret, Buffer.from(block, 'hex')]), 'buffer')
    return decrypt('cbc', fit(key, keyBytes), fit(salt, 16), base64(lock, name))
  }
  const input = unlock(blockKeys.input, 'encryptedVerifierHashInput').subarray(0, Number(attribute(lock, 'saltSize')))
  const value = unlock(blockKeys.value, 'encryptedVerifierHashValue').subarray(0, Number(attribute(lock, 'hashSize')))
  if (!isSame(hash(algorithm(lock), input, 'buffer'), value)) return null
  const key = unlock(blockKeys.key, 'encryptedKeyValue').subarray(0, keyBytes)
  const segments = Array.from({ length: Math.ceil(encrypted.length / segmentBytes) }, (_, index) => {
    const iv = hash(algorithm(data), Buffer.concat([base64(data, 'saltValue'), uint32(index)]), 'buffer')
    return decrypt('cbc', key, fit(iv, 16), encrypted.subarray(index * segmentBytes, (index + 1) * segmentBytes))
  })
  return Buffer.concat(segments).subarray(0, size)
}

/** Office 2007: AES without chaining, SHA-1. */
function decryptStandard(info: Buffer, { size, encrypted }: EncryptedContents, password: string): Buffer | null {
  const headerBytes = info.readUInt32LE(8)
  const keyBytes = info.readUInt32LE(12 + 16) / 8
  const verifier = info.subarray(12 + headerBytes)
  const secret = hash('sha1', Buffer.concat([spin('sha1', verifier.subarray(4, 20), password, 50_000), uint32(0)]), 'buffer')
  const half = (filler: number) => {
    const block = Buffer.alloc(64, filler)
    for (const [index, byte] of secret.entries()) block[index]! ^= byte
    return hash('sha1', block, 'buffer')
  }
  const key = Buffer.concat([half(0x36), half(0x5c)]).subarray(0, keyBytes)
  const input = decrypt('ecb', key, null, verifier.subarray(20, 36))
  const value = decrypt('ecb', key, null, verifier.subarray(40, 72)).subarray(0, 20)
  return isSame(hash('sha1', input, 'buffer'), value) ? decrypt('ecb', key, null, encrypted).subarray(0, size) : null
}

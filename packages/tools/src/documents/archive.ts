import { crc32, inflateRawSync } from 'node:zlib'
import { Unreadable } from './unreadable.ts'

/**
 * Limits of a ZIP archive. They count inflated bytes, whatever sizes its headers claim. Parts of up to `freeBytes` may grow by more than
 * `expansion`, as a short repetitive document does.
 */
export const archiveLimits = { entries: 2_000, bytes: 200 * 2 ** 20, expansion: 100, freeBytes: 2 ** 20 } as const

export interface Archive {
  /** Contents of the XML parts, by name. */
  readonly parts: ReadonlyMap<string, Buffer>
  /** Other files of the archive, with the size that its directory claims. They are not inflated, and nested archives are not opened. */
  readonly media: readonly { readonly name: string; readonly bytes: number }[]
}

export interface ArchiveParts {
  /** Names of the parts that are inflated. */
  readonly names: RegExp
  /** Whether they may declare document types. Only a reader that ignores their entities may read those. */
  readonly documentTypes: boolean
}

const officeParts: ArchiveParts = { names: /\.(xml|rels|vml)$/i, documentTypes: false }

interface Entry {
  readonly name: string
  readonly flags: number
  readonly method: number
  readonly compressedBytes: number
  readonly bytes: number
  readonly offset: number
}

const endOfDirectory = Buffer.from('PK\x05\x06', 'latin1')
const directoryEntry = 0x02014b50
const localHeader = 0x04034b50

/** Inflates parts of an archive, by default those of an Office file in XML, within `archiveLimits`. */
export function openArchive(file: string, bytes: Buffer, wanted: ArchiveParts = officeParts): Archive {
  try {
    return readArchive(file, bytes, wanted)
  } catch (error) {
    if (error instanceof Unreadable) throw error
    throw new Unreadable(`${file} is a damaged ZIP archive; part of it is missing or overwritten. Try another copy.`)
  }
}

function readArchive(file: string, bytes: Buffer, wanted: ArchiveParts): Archive {
  const entries = directory(file, bytes)
  const parts = new Map<string, Buffer>()
  const media: { name: string; bytes: number }[] = []
  let free: number = archiveLimits.bytes
  let end = 0
  for (const entry of entries.toSorted((a, b) => a.offset - b.offset)) {
    const start = dataStart(bytes, entry)
    if (entry.offset < end) throw new Unreadable(`${file} is refused: entries of its archive overlap, as those of archive bombs do.`)
    end = start + entry.compressedBytes
    if (end > bytes.length) throw new Error('data behind the end')
    if (entry.name.endsWith('/')) continue
    if (!wanted.names.test(entry.name)) {
      media.push({ name: entry.name, bytes: entry.bytes })
      continue
    }
    if (entry.flags & 1) throw new Unreadable(`${file} is encrypted with a password. Ask for a copy without one.`)
    const part = inflate(file, entry, bytes.subarray(start, end), free)
    free -= part.length
    if (!wanted.documentTypes) refuseDeclarations(file, entry.name, part)
    parts.set(entry.name, part)
  }
  return { parts, media: media.toSorted((a, b) => (a.name < b.name ? -1 : 1)) }
}

function directory(file: string, bytes: Buffer): Entry[] {
  const end = bytes.lastIndexOf(endOfDirectory)
  if (end < 0) throw new Error('no directory')
  const count = bytes.readUInt16LE(end + 10)
  if (count > archiveLimits.entries) {
    throw new Unreadable(`${file} is refused: its archive has more than ${archiveLimits.entries} entries.`)
  }
  const entries: Entry[] = []
  let at = bytes.readUInt32LE(end + 16)
  for (let index = 0; index < count; index += 1) {
    if (bytes.readUInt32LE(at) !== directoryEntry) throw new Error('no directory entry')
    const nameBytes = bytes.readUInt16LE(at + 28)
    entries.push({
      flags: bytes.readUInt16LE(at + 8),
      method: bytes.readUInt16LE(at + 10),
      compressedBytes: bytes.readUInt32LE(at + 20),
      bytes: bytes.readUInt32LE(at + 24),
      offset: bytes.readUInt32LE(at + 42),
      name: bytes.toString('utf8', at + 46, at + 46 + nameBytes).replaceAll('\\', '/'),
    })
    at += 46 + nameBytes + bytes.readUInt16LE(at + 30) + bytes.readUInt16LE(at + 32)
  }
  return entries
}

function dataStart(bytes: Buffer, { offset }: Entry): number {
  if (bytes.readUInt32LE(offset) !== localHeader) throw new Error('no local header')
  return offset + 30 + bytes.readUInt16LE(offset + 26) + bytes.readUInt16LE(offset + 28)
}

function inflate(file: string, { name, method }: Entry, data: Buffer, free: number): Buffer {
  const most = Math.min(free, Math.max(archiveLimits.freeBytes, archiveLimits.expansion * data.length))
  if (method === 0 && data.length <= most) return data
  if (method !== 0 && method !== 8)
    throw new Unreadable(`${file} compresses "${name}" in a way that no Office program writes. Try another copy.`)
  try {
    return inflateRawSync(data, { maxOutputLength: Math.max(1, most) })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_BUFFER_TOO_LARGE') throw error
    throw new Unreadable(
      `${file} is refused: "${name}" grows to more than ${archiveLimits.expansion} times its size or the file to more than 200 MB, as archive bombs do.`,
    )
  }
}

/**
 * Refuses document types, which Office Open XML forbids and which declare entities. External entities read
 * files; nested ones fill the memory.
 */
function refuseDeclarations(file: string, name: string, part: Buffer): void {
  if (/<!(doctype|entity)/i.test(part.toString('latin1').replaceAll('\0', ''))) {
    throw new Unreadable(`${file} is refused: "${name}" declares a document type or entities, which Office files never do.`)
  }
}

/** Makes a ZIP archive of the same files without compression, for readers that open archives on their own. */
export function toStoredArchive(parts: ReadonlyMap<string, Buffer>): Buffer {
  const files: Buffer[] = []
  const records: Buffer[] = []
  let offset = 0
  for (const [name, data] of parts) {
    const nameBytes = Buffer.from(name)
    const fields = Buffer.alloc(26)
    fields.writeUInt16LE(20, 0)
    fields.writeUInt16LE(0x0800, 2)
    fields.writeUInt32LE(crc32(data), 10)
    fields.writeUInt32LE(data.length, 14)
    fields.writeUInt32LE(data.length, 18)
    fields.writeUInt16LE(nameBytes.length, 22)
    const place = Buffer.alloc(14)
    place.writeUInt32LE(offset, 10)
    files.push(Buffer.from('PK\x03\x04', 'latin1'), fields, nameBytes, data)
    records.push(Buffer.from('PK\x01\x02\x14\0', 'latin1'), fields, place, nameBytes)
    offset += 30 + nameBytes.length + data.length
  }
  const end = Buffer.alloc(22)
  end.write('PK\x05\x06', 'latin1')
  end.writeUInt16LE(parts.size, 8)
  end.writeUInt16LE(parts.size, 10)
  end.writeUInt32LE(
    records.reduce((sum, record) => sum + record.length, 0),
    12,
  )
  end.writeUInt32LE(offset, 16)
  return Buffer.concat([...files, ...records, end])
}

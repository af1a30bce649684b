import { crc32, deflateRawSync } from 'node:zlib'

export interface ZipEntry {
  readonly name: string
  readonly offset: number
  readonly compressedBytes: number
  readonly bytes: number
  readonly flags: number
  readonly crc: number
}

/** A ZIP archive of these files. `edit` changes what its directory claims. */
export function buildZip(
  files: Readonly<Record<string, string | Buffer>>,
  edit: (entries: readonly ZipEntry[]) => readonly ZipEntry[] = (entries) => entries,
): Buffer {
  const chunks: Buffer[] = []
  const entries: ZipEntry[] = []
  const deflated = new Map<string | Buffer, Buffer>()
  let offset = 0
  for (const [name, content] of Object.entries(files)) {
    const data = deflated.get(content) ?? deflateRawSync(content)
    deflated.set(content, data)
    const entry = { name, offset, compressedBytes: data.length, bytes: content.length, flags: 0, crc: crc32(content) }
    const chunk = Buffer.concat([header('PK\x03\x04', entry, Buffer.alloc(0)), data])
    entries.push(entry)
    chunks.push(chunk)
    offset += chunk.length
  }
  const records = edit(entries).map((entry) => {
    const place = Buffer.alloc(14)
    place.writeUInt32LE(entry.offset, 10)
    return header('PK\x01\x02\x14\0', entry, place)
  })
  const end = Buffer.alloc(22)
  end.write('PK\x05\x06', 'latin1')
  end.writeUInt16LE(records.length, 8)
  end.writeUInt16LE(records.length, 10)
  end.writeUInt32LE(Buffer.concat(records).length, 12)
  end.writeUInt32LE(offset, 16)
  return Buffer.concat([...chunks, ...records, end])
}

function header(signature: string, entry: ZipEntry, place: Buffer): Buffer {
  const name = Buffer.from(entry.name)
  const fields = Buffer.alloc(26)
  fields.writeUInt16LE(20, 0)
  fields.writeUInt16LE(entry.flags, 2)
  fields.writeUInt16LE(8, 4)
  fields.writeUInt32LE(entry.crc, 10)
  fields.writeUInt32LE(entry.compressedBytes, 14)
  fields.writeUInt32LE(entry.bytes, 18)
  fields.writeUInt16LE(name.length, 22)
  return Buffer.concat([Buffer.from(signature, 'latin1'), fields, place, name])
}

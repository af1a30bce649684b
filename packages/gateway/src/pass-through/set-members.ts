import { spliceMembers } from '@aworld-train/core'
import { scanMembers } from '../json/scan-members.ts'

/** Returns `body` with these members instead of those of the same names. All other bytes stay. */
export function setMembers(body: Buffer, members: Readonly<Record<string, string>>): Buffer {
  const spans = scanMembers(body.toString('latin1'), (name) => Object.hasOwn(members, name))
  const pieces: Buffer[] = []
  let at = 0
  for (const { name, start, end } of spans) {
    pieces.push(body.subarray(at, start), Buffer.from(members[name]!))
    at = end
  }
  const found = new Set(spans.map(({ name }) => name))
  const missing = Object.entries(members).filter(([name]) => !found.has(name))
  const text = missing.map(([name, value]) => `${JSON.stringify(name)}:${value}`).join(',')
  return Buffer.concat([...pieces, spliceMembers(body.subarray(at), text)])
}

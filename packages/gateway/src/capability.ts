import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'

/** Names that a URL can carry as they are. All others are written in base64url after a `~`. */
const plainName = /^[A-Za-z0-9_-]{1,128}$/

/** `name` as one part of a capability: letters, digits, `_`, `-` and `~` only. */
function escapeName(name: string): string {
  return plainName.test(name) ? name : `~${Buffer.from(name, 'utf8').toString('base64url')}`
}

interface Entry<Value> {
  readonly mac: Buffer
  readonly value: Value
}

/** The open capabilities of one gateway: `{rollout}.{attempt}.{agent}.{mac}`, where the mac is 128 bits of HMAC-SHA-256. */
export interface Capabilities<Value> {
  /** A new capability for `value`. A name that was granted before gets another mac. */
  grant(rollout: string, attempt: number, agent: string, value: Value): string
  revoke(capability: string): void
  /** The value of `capability`. `undefined` if it is forged, revoked or was never granted, without a difference. */
  find(capability: string): Value | undefined
}

export function createCapabilities<Value>(): Capabilities<Value> {
  const secret = randomBytes(32)
  const entries = new Map<string, Entry<Value>>()
  const nobody: Buffer = Buffer.from(randomBytes(16).toString('base64url'))
  let grants = 0

  const split = (capability: string) => {
    const dot = capability.lastIndexOf('.')
    // Macs are compared as text, because several texts decode to the same mac.
    return { name: capability.slice(0, Math.max(dot, 0)), mac: Buffer.from(capability.slice(dot + 1)) }
  }

  return {
    grant(rollout, attempt, agent, value) {
      const name = `${escapeName(rollout)}.${attempt}.${escapeName(agent)}`
      const mac = createHmac('sha256', secret).update(`${grants++}:${name}`).digest().subarray(0, 16).toString('base64url')
      entries.set(name, { mac: Buffer.from(mac), value })
      return `${name}.${mac}`
    },
    revoke(capability) {
      entries.delete(split(capability).name)
    },
    find(capability) {
      const { name, mac } = split(capability)
      const entry = entries.get(name)
      const expected = entry?.mac ?? nobody
      if (mac.length !== expected.length) return undefined
      return timingSafeEqual(mac, expected) ? entry?.value : undefined
    },
  }
}

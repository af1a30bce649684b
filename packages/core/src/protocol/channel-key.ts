import { ChannelPartition } from './channel.ts'

/** The parts of a submission that make its key. */
export interface ChannelKeyParts {
  readonly run: string
  readonly incarnation: string
  readonly partition: ChannelPartition
  readonly step: number
  readonly uid: string
  readonly sample: number
}

/** `run/incarnation/partition/step/uid/sample`, each percent-encoded. */
export function channelKey({ run, incarnation, partition, step, uid, sample }: ChannelKeyParts): string {
  return [run, incarnation, partition, step, uid, sample].map((part) => encodeURIComponent(part)).join('/')
}

/** Parses a key into its parts; `null` for one of another form. */
export function parseChannelKey(key: string): ChannelKeyParts | null {
  const parts = key.split('/')
  if (parts.length !== 6) return null
  try {
    const [run, incarnation, partition, step, uid, sample] = parts.map(decodeURIComponent) as [
      string,
      string,
      string,
      string,
      string,
      string,
    ]
    const read = ChannelPartition.safeParse(partition)
    const found = { run, incarnation, partition: read.data!, step: Number(step), uid, sample: Number(sample) }
    return read.success && channelKey(found) === key ? found : null
  } catch {
    return null
  }
}

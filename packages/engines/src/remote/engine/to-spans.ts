import { type MixedVersions, TrainError, type WeightVersionSpan } from '@aworld-train/core'

/** The weights from token `start` on, under the server's own name for them. */
export interface LabelledSpan {
  readonly version: string
  readonly start: number
}

export interface SpansInput {
  readonly server: string
  /** Versions that the replica had during the call, in order. */
  readonly versions: readonly number[]
  /** The server's own report, if it makes one. */
  readonly labels: readonly LabelledSpan[] | null
  /** Version of the weights that the servers started with. They may have any name for it. */
  readonly initialVersion: number
}

export interface Spans {
  readonly weightVersions: readonly WeightVersionSpan[]
  readonly mixedVersions?: MixedVersions | undefined
}

/**
 * The weights that sampled each token. If an update fell into the call and the server does not report at which token, the completion is
 * marked mixed. Throws POLICY_STALE_WEIGHTS if the server names weights that it should not have.
 */
export function toSpans({ server, versions, labels, initialVersion }: SpansInput): Spans {
  const lowest = Math.min(...versions)
  const highest = Math.max(...versions)
  if (labels === null || labels.length === 0) {
    const weightVersions = [{ fromToken: 0, version: lowest }]
    return lowest === highest ? { weightVersions } : { weightVersions, mixedVersions: { lowest, highest } }
  }
  const weightVersions = labels.map(({ version, start }) => ({
    fromToken: start,
    version: /^\d+$/.test(version) ? Number(version) : initialVersion,
  }))
  const wrong = weightVersions.findIndex(({ version }) => version < lowest || version > highest)
  if (wrong < 0) return { weightVersions }
  throw new TrainError(
    'POLICY_STALE_WEIGHTS',
    `${server} sampled with weights "${labels[wrong]!.version}" where version ${highest} was published; it may have started again. Publish again.`,
    { details: { server, label: labels[wrong]!.version, lowest, highest } },
  )
}

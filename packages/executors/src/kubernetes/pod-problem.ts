import type { KubernetesPod } from './kubernetes-objects.ts'
import { misuseCodes } from './to-job.ts'

export interface PodProblem {
  /** Distinguishes problems of one pod. */
  readonly kind: string
  readonly message: string
  /** Whether the pod cannot start until the configuration changes. */
  readonly blocks: boolean
}

const imageReasons: ReadonlySet<string> = new Set(['ImagePullBackOff', 'InvalidImageName', 'ErrImageNeverPull', 'ImageInspectError'])
const containerReasons: ReadonlySet<string> = new Set(['CreateContainerConfigError', 'CreateContainerError', 'RunContainerError'])
/** Exit codes of a container whose command could not be run or found. */
const startCodes = [126, 127, 128]

/** Finds what keeps the worker in a pod from running or has ended it, with a remedy; `null` if it starts, runs, or has left. */
export function podProblem({ metadata, status }: KubernetesPod): PodProblem | null {
  const name = metadata?.name ?? ''
  const [container] = status?.containerStatuses ?? []
  const { waiting, terminated } = container?.state ?? {}
  const waitReason = waiting?.reason ?? ''
  if (imageReasons.has(waitReason))
    return {
      kind: 'image',
      blocks: true,
      message: `The image "${container?.image}" of pod "${name}" cannot be pulled (${waitReason}): ${sentence(waiting?.message)} Correct executor.options.image, push the image, or name the Secret of its registry in executor.options.pod.imagePullSecrets.`,
    }
  if (containerReasons.has(waitReason))
    return {
      kind: 'container',
      blocks: true,
      message: `The container of pod "${name}" cannot be made (${waitReason}): ${sentence(waiting?.message)} Correct executor.options.secrets, executor.options.pod or executor.options.container.`,
    }
  if (terminated) return terminated.exitCode === 0 ? null : endedProblem(name, terminated, status?.conditions ?? [])
  const placed = status?.conditions?.find(({ type }) => type === 'PodScheduled')
  if (placed?.status === 'False' && placed.reason === 'Unschedulable')
    return {
      kind: 'place',
      blocks: false,
      message: `Pod "${name}" waits for a node: ${sentence(placed.message)} Add nodes, or ask for less in executor.resources and executor.options.pod.`,
    }
  return null
}

type Terminated = NonNullable<
  NonNullable<NonNullable<NonNullable<KubernetesPod['status']>['containerStatuses']>[number]['state']>['terminated']
>

function endedProblem(
  name: string,
  { exitCode, reason, message }: Terminated,
  conditions: NonNullable<NonNullable<KubernetesPod['status']>['conditions']>,
): PodProblem {
  const words = message?.trim() ? ` It printed last: ${message.trim()}` : ''
  const ended = (kind: string, text: string, blocks = false) => ({ kind, message: `${text}${words}`, blocks })
  const disruption = conditions.find(({ type, status }) => type === 'DisruptionTarget' && status === 'True')
  if (disruption)
    return ended('disruption', `Worker "${name}" was ended by its cluster (${disruption.reason}) and is started again elsewhere.`)
  if (reason === 'OOMKilled')
    return ended(
      'memory',
      `Worker "${name}" used more memory than it may, was ended (OOMKilled) and is started again. Raise executor.resources.limits.memory, or lower executor.slots.`,
    )
  if (misuseCodes.includes(exitCode)) return ended('misuse', `Worker "${name}" cannot run: it ended with code ${exitCode}.`, true)
  if (startCodes.includes(exitCode))
    return ended(
      'start',
      `The command of pod "${name}" could not be started (code ${exitCode}). Correct executor.options.command, or put aworld-train on the PATH of the image.`,
      true,
    )
  return ended(
    'failure',
    `Worker "${name}" ended with code ${exitCode}${reason && reason !== 'Error' ? ` (${reason})` : ''} and is started again.`,
  )
}

const sentence = (text: string | undefined) => (text?.trim() ? `${text.trim().replace(/\.$/, '')}.` : 'the cluster says no more.')

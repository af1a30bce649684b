/** The used parts of objects of Kubernetes 1.33, under their own names: https://kubernetes.io/docs/reference/kubernetes-api/ */

export interface Metadata {
  readonly name?: string
  readonly uid?: string
  readonly labels?: Readonly<Record<string, string>>
  readonly annotations?: Readonly<Record<string, string>>
  /** The client reads it as a `Date`. */
  readonly creationTimestamp?: Date
  readonly deletionTimestamp?: Date
  readonly ownerReferences?: readonly {
    readonly apiVersion: string
    readonly kind: string
    readonly name: string
    readonly uid: string
  }[]
}

export interface Condition {
  readonly type: string
  readonly status: string
  readonly reason?: string
  readonly message?: string
}

export interface JobSpec {
  readonly completionMode: 'Indexed'
  readonly completions: number
  readonly parallelism: number
  readonly suspend: boolean
  readonly backoffLimitPerIndex: number
  readonly ttlSecondsAfterFinished: number
  readonly podFailurePolicy: { readonly rules: readonly object[] }
  readonly template: { readonly metadata: Metadata; readonly spec: Readonly<Record<string, unknown>> }
}

export interface KubernetesJob {
  readonly apiVersion?: 'batch/v1'
  readonly kind?: 'Job'
  readonly metadata?: Metadata
  readonly spec?: JobSpec
  readonly status?: { readonly conditions?: readonly Condition[]; readonly failedIndexes?: string }
}

export interface KubernetesSecret {
  readonly metadata: Metadata
  readonly stringData: Readonly<Record<string, string>>
}

interface ContainerState {
  readonly waiting?: { readonly reason?: string; readonly message?: string }
  readonly running?: object
  readonly terminated?: { readonly exitCode: number; readonly reason?: string; readonly message?: string }
}

export interface KubernetesPod {
  readonly metadata?: Metadata
  readonly status?: {
    readonly phase?: string
    readonly conditions?: readonly Condition[]
    readonly containerStatuses?: readonly { readonly image?: string; readonly state?: ContainerState }[]
  }
}

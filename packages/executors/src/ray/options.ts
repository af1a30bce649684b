import { type LauncherSettings, TrainError } from '@aworld-train/core'
import { z } from 'zod'

/** `executor.options` of Ray. */
export const RayOptions = z.strictObject({
  /** Python of the cluster, in which Ray is installed. */
  python: z.string().min(1).default('python3'),
  /** Milliseconds that workers may wait for their resources before a warning. */
  placementMs: z.int().min(1).default(60_000),
})

/** `executor.resources` of Ray: options of an actor. */
export const RayResources = z.strictObject({
  /** Processors that Ray sets aside for each worker. */
  num_cpus: z.number().min(0).default(1),
  num_gpus: z.number().min(0).optional(),
  /** Memory in bytes. */
  memory: z.int().min(0).optional(),
  /** Resources that `ray start --resources` names. */
  resources: z.record(z.string(), z.number().min(0)).optional(),
  accelerator_type: z.string().min(1).optional(),
  /** Labels that a node must have. */
  label_selector: z.record(z.string(), z.string()).optional(),
})

export interface RaySettings {
  /** Address of the head node's dashboard. */
  readonly address: string
  readonly options: z.infer<typeof RayOptions>
  readonly resources: z.infer<typeof RayResources>
}

const defaultAddress = 'http://127.0.0.1:8265'

/** Reads the settings in Ray's terms. Throws CONFIG_INVALID. */
export function readRaySettings({ address, options, resources }: Pick<LauncherSettings, 'address' | 'options' | 'resources'>): RaySettings {
  const url = address ?? defaultAddress
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol)) {
    throw new TrainError('CONFIG_INVALID', `executor.address is "${url}"; give the address of Ray's dashboard, such as ${defaultAddress}.`)
  }
  return { address: url, options: read('options', RayOptions, options), resources: read('resources', RayResources, resources) }
}

function read<Value>(section: string, schema: z.ZodType<Value>, value: unknown): Value {
  const parsed = schema.safeParse(value)
  if (parsed.success) return parsed.data
  const problems = parsed.error.issues.map((issue) => [...issue.path, issue.message].join(': ')).join('; ')
  throw new TrainError('CONFIG_INVALID', `executor.${section} for Ray: ${problems}.`, { cause: parsed.error })
}

import { type LauncherSettings, TrainError } from '@aworld-train/core'
import { z } from 'zod'

/** `executor.options` of Spark. */
const SparkOptions = z.strictObject({
  /** Python with PySpark, here and on the nodes. */
  python: z.string().min(1).default('python3'),
})

/** `executor.resources` of Spark: properties such as `spark.executor.memory`. */
export const SparkProperties = z.record(z.string(), z.string()).superRefine((properties, context) => {
  for (const key of Object.keys(properties))
    if (!key.startsWith('spark.'))
      context.addIssue({ code: 'custom', path: [key], message: 'is no property of Spark, such as spark.executor.memory' })
})

export interface SparkSettings {
  readonly master: string
  readonly python: string
  readonly properties: z.infer<typeof SparkProperties>
}

/** Reads the settings in Spark's terms. Throws CONFIG_INVALID. */
export function readSparkSettings({ address, workerNum, options, resources }: LauncherSettings): SparkSettings {
  const master = address ?? `local[${workerNum}]`
  if (!/^(local(\[.+\])?|spark:\/\/.+|yarn|k8s:\/\/.+)$/.test(master)) {
    throw new TrainError(
      'CONFIG_INVALID',
      `executor.address is "${master}"; give a master of Spark, such as spark://head:7077 or local[4].`,
    )
  }
  return { master, python: read('options', SparkOptions, options).python, properties: read('resources', SparkProperties, resources) }
}

function read<Value>(section: string, schema: z.ZodType<Value>, value: unknown): Value {
  const parsed = schema.safeParse(value)
  if (parsed.success) return parsed.data
  const problems = parsed.error.issues.map((issue) => [...issue.path, issue.message].join(': ')).join('; ')
  throw new TrainError('CONFIG_INVALID', `executor.${section} for Spark: ${problems}.`, { cause: parsed.error })
}

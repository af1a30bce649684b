import { expect, it } from 'vitest'
import { readSparkSettings } from './options.ts'

it.each([
  [
    { address: 'http://head:7077' },
    'executor.address is "http://head:7077"; give a master of Spark, such as spark://head:7077 or local[4].',
  ],
  [{ options: { pyton: 'python3' } }, 'executor.options for Spark: Unrecognized key: "pyton".'],
  [{ resources: { memory: '2g' } }, 'executor.resources for Spark: memory: is no property of Spark, such as spark.executor.memory.'],
  [
    { resources: { 'spark.executor.cores': 2 } },
    'executor.resources for Spark: spark.executor.cores: Invalid input: expected string, received number.',
  ],
])('%j is refused', (settings, message) => {
  const rest = { address: null, workerNum: 1, slots: 1, resources: {}, env: {}, options: {}, directory: '.' }
  expect(() => readSparkSettings({ ...rest, ...settings })).toThrow(expect.objectContaining({ code: 'CONFIG_INVALID', message }))
})

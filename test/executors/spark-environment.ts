import { fileURLToPath } from 'node:url'
import { pythonEnvironment } from '../support/python-environment.ts'

const requirements = fileURLToPath(new URL('../../packages/executors/requirements/pyspark-4.3.0.txt', import.meta.url))

/** The Python that PySpark is installed in. */
export const sparkEnvironment = (): Promise<string> => pythonEnvironment({ name: 'pyspark-4.3.0', requirements })

// Real trainers and engines, each in a Python environment that the test makes, and training that takes a minute by itself.
import { suite } from '../../vitest.base.ts'

export default suite('trainers', { testTimeout: 600_000, hookTimeout: 600_000 })

// Real trainers and engines, each in a Python environment that the test makes, and training that takes a minute by itself.
import { suite } from '../../vitest.base.ts'

// Two files at once: half of what they take is a Python that imports or a service that waits.
export default suite('trainers', { fileParallelism: true })

// What needs a GPU and a model on disk: each test says what it misses where it is skipped.
import { suite } from '../../vitest.base.ts'

export default suite('gpu', { testTimeout: 3_600_000, hookTimeout: 3_600_000 })

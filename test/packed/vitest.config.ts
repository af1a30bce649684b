// The packages as somebody has them who installs them: npm asks its registry for what they depend on.
import { suite } from '../../vitest.base.ts'

export default suite('packed')

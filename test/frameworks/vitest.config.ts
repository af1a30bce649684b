// Agents of other frameworks, installed apart from the workspace.
import { suite } from '../../vitest.base.ts'

export default suite('frameworks', { globalSetup: ['test/frameworks/install.ts'] })

import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { bridgeDirectory } from '../../shared/python-package.ts'
import { verlAgentLoopTarget, verlPluginModule } from './bridge-names.ts'

it('names a class and a module that exist', () => {
  for (const name of [verlAgentLoopTarget.replace(/\.[^.]+$/, ''), verlPluginModule])
    expect(existsSync(join(bridgeDirectory, `${name.replaceAll('.', '/')}.py`)), name).toBe(true)
})

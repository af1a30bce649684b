import { mkdir, mkdtemp, realpath, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { packageFolders } from './package-folders.ts'

test('optional dependencies of a package are among its folders only where they are asked for', async () => {
  const root = await realpath(await mkdtemp(join(tmpdir(), 'packages-')))
  const add = async (folder: string, manifest: object) => {
    await mkdir(folder, { recursive: true })
    await writeFile(join(folder, 'package.json'), JSON.stringify(manifest))
    return folder
  }
  await add(root, { dependencies: { plain: '1' }, optionalDependencies: { native: '1' } })
  const plain = await add(join(root, 'node_modules/plain'), { optionalDependencies: { part: '1' } })
  const part = await add(join(root, 'node_modules/part'), {})
  const native = await add(join(root, 'node_modules/native'), {})
  expect(packageFolders(root, false).sort()).toEqual([root, part, plain].sort())
  expect(packageFolders(root, true).sort()).toEqual([root, native, part, plain].sort())
  await rm(root, { recursive: true })
})

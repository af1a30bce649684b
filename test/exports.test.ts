import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'

const packages = fileURLToPath(new URL('../packages', import.meta.url))
const libraries = readdirSync(packages).filter((name) => name !== 'cli')

/** Public names of a module: values it exports, and types named in its export statements, files behind `export *` included. */
function publicNames(file: string): string[] {
  const text = readFileSync(file, 'utf8')
  const named = [...text.matchAll(/export\s+(?:type\s+)?\{([^}]*)\}/g)].flatMap((match) =>
    (match[1] as string)
      .split(',')
      .map((part) =>
        part
          .trim()
          .replace(/^type\s+/, '')
          .replace(/^.* as /, ''),
      )
      .filter(Boolean),
  )
  const declared = [
    ...text.matchAll(/^export\s+(?:declare\s+)?(?:abstract\s+)?(?:async\s+)?(?:const|function\*?|class|interface|type|enum)\s+(\w+)/gm),
  ].map((match) => match[1] as string)
  const starred = [...text.matchAll(/export\s+(?:type\s+)?\*\s+from\s+'(\.[^']+)'/g)].flatMap((match) =>
    publicNames(join(file, '..', match[1] as string)),
  )
  return [...new Set([...named, ...declared, ...starred])].sort()
}

/** Modules that a package exports under names of their own. */
const subpaths = ['aworld-train/vitest']

describe('public names', () => {
  it.each([...libraries, ...subpaths])('%s exports the names it has', async (path) => {
    const [library, subpath = ''] = path.split('/') as [string, string?]
    const name = path.replace('/', '-')
    const names = publicNames(join(packages, library, 'src', subpath, 'index.ts'))
    const values = Object.keys((await import(join(packages, library, 'src', subpath, 'index.ts'))) as object)
    expect(values.filter((value) => !names.includes(value))).toEqual([])
    await expect(`${names.join('\n')}\n`).toMatchFileSnapshot(`public-names/${name}.txt`)
  })
})

import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'

const packages = fileURLToPath(new URL('../packages', import.meta.url))

/** Each entry of a package's `exports` with the module behind it; the command line exports nothing. */
const entries = readdirSync(packages)
  .filter((name) => name !== 'cli')
  .flatMap((name) => {
    const { exports } = JSON.parse(readFileSync(join(packages, name, 'package.json'), 'utf8')) as { exports: Record<string, string> }
    return Object.entries(exports).map(([path, module]) => ({ entry: join(name, path), module: join(packages, name, module) }))
  })

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

describe('public names', () => {
  it.each(entries)('$entry exports the names it has', async ({ entry, module }) => {
    const names = publicNames(module)
    const values = Object.keys((await import(module)) as object)
    expect(values.filter((value) => !names.includes(value))).toEqual([])
    await expect(`${names.join('\n')}\n`).toMatchFileSnapshot(`public-names/${entry.replace('/', '-')}.txt`)
  })
})

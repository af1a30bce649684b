import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { outermost, programFiles } from './program-files.ts'

let root: string
beforeEach(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), 'program-files-')))
})
afterEach(() => rmSync(root, { recursive: true }))

function write(...paths: string[]): void {
  for (const path of paths) {
    mkdirSync(dirname(join(root, path)), { recursive: true })
    writeFileSync(join(root, path), '')
  }
}
function link(path: string, target: string): void {
  mkdirSync(dirname(join(root, path)), { recursive: true })
  symlinkSync(target, join(root, path))
}
/** The outermost files relative to the root, without those of the machine. */
const filesOf = (...command: string[]) =>
  outermost(programFiles(command.map((word) => (word.includes('/') ? join(root, word) : word))))
    .filter((path) => path.startsWith(root))
    .map((path) => path.slice(root.length + 1))
    .sort()

test('a script is shown with the packages that Node finds, and nothing beside it', () => {
  write(
    'app/.env',
    'app/package.json',
    'app/servers/search.ts',
    'app/servers/secret.ts',
    'app/node_modules/a/index.js',
    'node_modules/b/index.js',
  )
  expect(filesOf('node', 'app/servers/search.ts', '--flag', 'word', 'app/servers', 'app/missing.ts')).toEqual([
    'app/node_modules',
    'app/package.json',
    'app/servers/search.ts',
    'node_modules',
  ])
})

test('a program of a package is shown with what its link leads to', () => {
  write('app/node_modules/a/dist/main.js', 'other/node_modules/c/index.js', 'other/c-main.js')
  link('app/node_modules/.bin/a', '../a/dist/main.js')
  link('app/bin/c', '../../other/c-main.js')
  expect(filesOf('app/node_modules/.bin/a')).toEqual(['app/node_modules'])
  expect(filesOf('app/bin/c')).toEqual(['app/bin/c', 'app/node_modules', 'other/c-main.js', 'other/node_modules'])
})

test('a program of a virtual environment is shown with it, and with the installation that its interpreter is of', () => {
  write('app/.venv/pyvenv.cfg', 'app/.venv/bin/server', 'app/.venv/lib/python3.12/site-packages/m.py', 'app/.venv/secret', 'app/.env')
  write('pythons/3.12/bin/python3.12', 'pythons/3.12/lib/python3.12/os.py', 'pythons/3.12/share/doc')
  link('app/.venv/bin/python', '../../../pythons/3.12/bin/python3.12')
  const venv = ['app/.venv/bin', 'app/.venv/lib', 'app/.venv/pyvenv.cfg']
  const installation = ['pythons/3.12/bin', 'pythons/3.12/lib']
  expect(filesOf('app/.venv/bin/server')).toEqual([...venv, ...installation])
  expect(filesOf('app/.venv/bin/python', '-m', 'm')).toEqual([...venv, ...installation])
  expect(filesOf('pythons/3.12/bin/python3.12')).toEqual(installation)
})

#!/usr/bin/env node
// Compiles assembly/ into dist/kernels/plain.wasm and relaxed.wasm. Any warning of the compiler fails the build.
import { mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import process from 'node:process'
import { fileURLToPath } from 'node:url'
import asc from 'assemblyscript/asc'

const home = join(dirname(fileURLToPath(import.meta.url)), '..')
const out = join(home, 'dist', 'kernels')
const variants = { plain: 'simd,threads', relaxed: 'simd,threads,relaxed-simd' }

function fail(message) {
  process.stderr.write(`${message}\n`)
  process.exit(1)
}

mkdirSync(out, { recursive: true })
for (const [name, features] of Object.entries(variants)) {
  const fresh = join(out, `${name}.${process.pid}.wasm`)
  const { error, stdout, stderr } = await asc.main(
    [
      'assembly/index.ts',
      '--baseDir',
      home,
      '--outFile',
      fresh,
      '--runtime',
      'stub',
      '--enable',
      features,
      '--importMemory',
      '--noExportMemory',
      '--sharedMemory',
      // These are the bounds of an import. The host makes a memory of exactly the size in the layout.
      '--initialMemory',
      '1',
      '--maximumMemory',
      '65536',
      '-O3',
      '--noAssert',
    ],
    { stdout: asc.createMemoryStream(), stderr: asc.createMemoryStream() },
  )
  const output = `${stdout}${stderr}`
  if (error || /WARNING|ERROR/.test(output)) {
    rmSync(fresh, { force: true })
    fail(`The ${name} kernels did not compile${error ? ` (${error.message})` : ''}:\n${output}`)
  }
  renameSync(fresh, join(out, `${name}.wasm`))
}
writeFileSync(join(out, 'stamp'), '')

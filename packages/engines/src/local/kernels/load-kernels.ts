import { readFile } from 'node:fs/promises'
import process from 'node:process'
import { TrainError } from '@aworld-train/core'
import { moduleProblems } from './inspect-module.ts'
import { type WasmModule, wasm } from './webassembly.ts'

/** `relaxed` fuses multiply and add, which is faster, but its bits may differ between machines. `plain` gives the same bits everywhere. */
export type SimdTier = 'plain' | 'relaxed'

export interface LoadedKernels {
  readonly tier: SimdTier
  readonly module: WasmModule
}

// (module (func (result v128) v128.const 0 ×3, f32x4.relaxed_madd))
const relaxedProbe = Uint8Array.from([
  ...[0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00, 0x01, 0x05, 0x01, 0x60, 0x00, 0x01, 0x7b, 0x03, 0x02, 0x01, 0x00],
  ...[0x0a, 0x3d, 0x01, 0x3b, 0x00],
  ...Array.from({ length: 3 }, () => [0xfd, 0x0c, ...new Array<number>(16).fill(0)]).flat(),
  ...[0xfd, 0x85, 0x02, 0x0b],
])

/** Whether this engine runs relaxed SIMD instructions. */
export function supportsRelaxedSimd(): boolean {
  return wasm.validate(relaxedProbe)
}

/** Chooses a tier: `tier`, else AWORLD_TRAIN_SIMD, else the best that this machine supports. Throws CONFIG_INVALID. */
export function chooseTier(tier?: SimdTier): SimdTier {
  const choice = tier ?? process.env['AWORLD_TRAIN_SIMD']
  if (choice === undefined || choice === '') return supportsRelaxedSimd() ? 'relaxed' : 'plain'
  if (choice !== 'plain' && choice !== 'relaxed') {
    throw new TrainError(
      'CONFIG_INVALID',
      `The SIMD tier "${choice}" is unknown; set AWORLD_TRAIN_SIMD to plain or relaxed, or leave it out.`,
    )
  }
  if (choice === 'relaxed' && !supportsRelaxedSimd()) {
    throw new TrainError('CONFIG_INVALID', `Node ${process.version} does not run relaxed SIMD; set the tier to plain, or leave it out.`)
  }
  return choice
}

/** URL of the compiled kernels of a tier, both from the sources and from the built package. */
export function kernelsUrl(tier: SimdTier): URL {
  return new URL(`../../../dist/kernels/${tier}.wasm`, import.meta.url)
}

/** Compiles the kernels of a tier. Throws CONFIG_INVALID if they are not built, or the pool cannot share them. */
export async function loadKernels(tier: SimdTier): Promise<LoadedKernels> {
  const url = kernelsUrl(tier)
  const bytes = await readFile(url).catch((cause: unknown) => {
    throw new TrainError(
      'CONFIG_INVALID',
      `The kernels ${url.pathname} cannot be read; build them with packages/engines/scripts/build-kernels.mjs.`,
      { cause },
    )
  })
  const problems = moduleProblems(bytes)
  if (problems.length > 0)
    throw new TrainError(
      'CONFIG_INVALID',
      `The kernels ${url.pathname} cannot be shared by threads: ${problems.join(' ')} Build them again.`,
    )
  return { tier, module: await wasm.compile(bytes) }
}

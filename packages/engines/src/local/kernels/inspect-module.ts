import { wasm } from './webassembly.ts'

/** Sections that would give an instance state of its own, by their number in the binary format (WebAssembly 2.0, section 5.5). */
const statefulSections: Readonly<Record<number, string>> = {
  4: 'table',
  6: 'global',
  8: 'start',
  9: 'element',
  11: 'data',
  12: 'data count',
}

/** Numbers of the sections of a binary module, in order. */
export function sectionIds(bytes: Uint8Array): number[] {
  const ids: number[] = []
  let at = 8
  while (at < bytes.length) {
    ids.push(bytes[at++]!)
    let size = 0
    for (let shift = 0; ; shift += 7) {
      const byte = bytes[at++]!
      size += (byte & 0x7f) * 2 ** shift
      if (byte < 0x80) break
    }
    at += size
  }
  return ids
}

/** Reasons why instances of a module could not share one memory; empty if they can. Its one import must be env.memory. */
export function moduleProblems(bytes: Uint8Array): string[] {
  if (!wasm.validate(bytes)) return ['It is not a module that this engine runs.']
  const problems = sectionIds(bytes).flatMap((id) => (statefulSections[id] ? [`It has a ${statefulSections[id]} section.`] : []))
  const imports = wasm.Module.imports(new wasm.Module(bytes)).map(({ module, name }) => `${module}.${name}`)
  if (imports.length !== 1 || imports[0] !== 'env.memory')
    problems.push(`It imports ${imports.join(', ') || 'nothing'} instead of env.memory alone.`)
  return problems
}

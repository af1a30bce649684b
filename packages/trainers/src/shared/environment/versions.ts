const parts = /^v?(?:\d+!)?(?<numbers>\d+(?:\.\d+)*)(?<pre>[-._]?(?:a|b|c|rc|alpha|beta|pre|preview|dev)[-._]?\d*)?/i

/** Sign of the comparison of a version with a release such as [0, 10]. A pre-release comes before its version (PEP 440). */
export function compareVersions(version: string, release: readonly number[]): number {
  return compareNumbers(version, release) || (parts.exec(version)?.groups?.['pre'] === undefined ? 0 : -1)
}

/** Whether a version is below a release; a pre-release of that release is not (PEP 440, exclusive comparison). */
export function isBelow(version: string, release: readonly number[]): boolean {
  return compareNumbers(version, release) < 0
}

function compareNumbers(version: string, release: readonly number[]): number {
  const numbers = (parts.exec(version)?.groups?.['numbers'] ?? '0').split('.').map(Number)
  for (let index = 0; index < Math.max(numbers.length, release.length); index++) {
    const difference = (numbers[index] ?? 0) - (release[index] ?? 0)
    if (difference !== 0) return difference
  }
  return 0
}

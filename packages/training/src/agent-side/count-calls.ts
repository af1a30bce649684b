import type { TokenEngine } from '@aworld-train/core'

/** Wraps an engine and counts its calls. `onChange` is called when a call begins and when it ends. */
export function countCalls(
  engine: TokenEngine,
  onChange: (change: 1 | -1) => void = () => {},
): { readonly engine: TokenEngine; calls(): number } {
  let calls = 0
  return {
    engine: {
      name: engine.name,
      get model() {
        return engine.model
      },
      async generate(request, signal) {
        calls += 1
        onChange(1)
        try {
          return await engine.generate(request, signal)
        } finally {
          onChange(-1)
        }
      },
      constraints: engine.constraints,
      weightVersion: () => engine.weightVersion(),
      sampledTokens: () => engine.sampledTokens(),
      ...(engine.health && { health: () => engine.health!() }),
      ...(engine.forget && { forget: (affinity: string) => engine.forget!(affinity) }),
      close: () => engine.close(),
    },
    calls: () => calls,
  }
}

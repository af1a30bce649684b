/** Identifies the agent that a process has. */
export interface AgentIdentity {
  readonly hash: string
  /** Inputs of the hash, for messages: names of files, packages, agents and tools, each with its hash or version. */
  readonly parts: Readonly<Record<string, string>>
}

/** The first difference between the agents of a coordinator and of a worker, in words. */
export function firstDifference(coordinator: AgentIdentity, worker: AgentIdentity): string {
  const names = new Set([...Object.keys(coordinator.parts), ...Object.keys(worker.parts)])
  for (const name of names) {
    const [here, there] = [coordinator.parts[name], worker.parts[name]]
    if (here === there) continue
    if (there === undefined) return `its worker has no ${name}`
    if (here === undefined) return `its coordinator has no ${name}`
    return name.startsWith('package ') ? `${name} is ${there} there and ${here} here` : `${name} is another one`
  }
  return `its hash is ${worker.hash}, that of the coordinator ${coordinator.hash}`
}

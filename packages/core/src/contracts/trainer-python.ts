/** An interpreter and its packages. A package is `null` if it is not installed. */
export interface PythonFacts {
  readonly version: string
  readonly packages: Readonly<Record<string, string | null>>
}

/** A problem of an interpreter. An error prevents training; a warning is shown and training continues. */
export interface PythonProblem {
  readonly level: 'error' | 'warning'
  /** The part at fault: `python` or the name of a package. */
  readonly about: string
  /** The problem and the remedy. */
  readonly message: string
}

export interface Gpu {
  readonly name: string
  readonly memoryBytes: number
  readonly freeBytes: number
  /** Such as `9.0`. */
  readonly capability: string
}

/** Output of `nvidia-smi`: versions such as `580.65.06` and `13.0`. The latter is the newest CUDA that the driver supports. */
export interface GpuDriver {
  readonly version: string
  readonly cuda: string | null
  readonly gpus: readonly Gpu[]
}

/** The packages to install on a machine. */
export interface SetupPlan {
  /** Absolute path of the file of requirements. */
  readonly requirements: string
  /** Further arguments of `uv pip install`. */
  readonly arguments: readonly string[]
  /** A sentence for people: what will be installed, and why. */
  readonly says: string
}

/** The Python of a framework: its package, the versions that train, and the pinned ones for an environment of its own. */
export interface TrainerPython {
  /** Name of the trainer, in the folder of its environment and in commands. */
  readonly name: string
  /** The distribution that marks an interpreter as the trainer's. An interpreter without it is passed over. */
  readonly distribution: string
  /** Distributions whose versions are read, including `distribution`. */
  readonly inspected: readonly string[]
  /** Those of them that are shown to people. */
  readonly shown: readonly string[]
  /** Versions of Python for an environment in uv's notation, such as `>=3.11,<3.13`. */
  readonly versions: string
  judge(facts: PythonFacts): readonly PythonProblem[]
  /** `torch` is `auto`, `cpu` or a version of CUDA such as `13.0`. Throws TRAINER_ENVIRONMENT or CONFIG_INVALID. */
  planSetup(machine: { readonly torch: string; readonly driver: GpuDriver | null }): SetupPlan
}

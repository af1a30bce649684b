/** What an interpreter is and holds; a package is `null` where it is not installed. */
export interface PythonFacts {
  readonly version: string
  readonly packages: Readonly<Record<string, string | null>>
}

/** What stands against training with an interpreter: an error refuses it, a warning is said and training goes on. */
export interface PythonProblem {
  readonly level: 'error' | 'warning'
  /** The part at fault: `python` or the name of a package. */
  readonly about: string
  /** What is wrong and what to do. */
  readonly message: string
}

export interface Gpu {
  readonly name: string
  readonly memoryBytes: number
  readonly freeBytes: number
  /** Such as `9.0`. */
  readonly capability: string
}

/** What `nvidia-smi` says; versions such as `580.65.06` and `13.0`, the latter the newest CUDA that the driver takes. */
export interface GpuDriver {
  readonly version: string
  readonly cuda: string | null
  readonly gpus: readonly Gpu[]
}

/** Which packages are installed on a machine. */
export interface SetupPlan {
  /** Absolute path of the file of requirements. */
  readonly requirements: string
  /** Arguments of `uv pip install` beside it. */
  readonly arguments: readonly string[]
  /** What will be installed and why, for a person. */
  readonly says: string
}

/** The Python of a framework: its package, the versions that train, and the pinned ones of an environment of its own. */
export interface DrivenPython {
  /** Name of the trainer, in the folder of its environment and in commands. */
  readonly name: string
  /** The distribution that makes an interpreter the trainer's; one without it is passed over. */
  readonly distribution: string
  /** Distributions whose versions are read, `distribution` included. */
  readonly inspected: readonly string[]
  /** Those of them that a person is shown. */
  readonly shown: readonly string[]
  /** Versions of Python for an environment, as uv understands them, such as `>=3.11,<3.13`. */
  readonly versions: string
  judge(facts: PythonFacts): readonly PythonProblem[]
  /** `torch` is `auto`, `cpu` or a version of CUDA such as `13.0`. Throws TRAINER_ENVIRONMENT or CONFIG_INVALID. */
  planSetup(machine: { readonly torch: string; readonly driver: GpuDriver | null }): SetupPlan
}

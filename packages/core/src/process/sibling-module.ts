/** The URL of the module `name`, given without its ending, beside the one at `from`: a source file if that is one, else a built one. */
export const siblingModule = (name: string, from: string): URL => new URL(`./${name}${from.endsWith('.ts') ? '.ts' : '.js'}`, from)

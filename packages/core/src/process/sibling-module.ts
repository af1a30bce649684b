/** The address of the module `name`, without its ending, beside the one at `from`: source where that is source, else built. */
export const siblingModule = (name: string, from: string): URL => new URL(`./${name}${from.endsWith('.ts') ? '.ts' : '.js'}`, from)

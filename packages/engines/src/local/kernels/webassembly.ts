/** The part of the WebAssembly API that the engine uses. Node has it, but TypeScript declares it only with the browser's types. */
export interface WasmModule {
  readonly [Symbol.toStringTag]: string
}

export interface WasmMemory {
  readonly buffer: ArrayBufferLike
}

interface WebAssemblyApi {
  validate(bytes: Uint8Array): boolean
  compile(bytes: Uint8Array): Promise<WasmModule>
  readonly Module: {
    new (bytes: Uint8Array): WasmModule
    imports(module: WasmModule): { readonly module: string; readonly name: string; readonly kind: string }[]
    exports(module: WasmModule): { readonly name: string; readonly kind: string }[]
  }
  readonly Instance: new (
    module: WasmModule,
    imports: Record<string, Record<string, unknown>>,
  ) => { readonly exports: Record<string, unknown> }
  /** Sizes are pages of 64 KiB. */
  readonly Memory: new (limits: {
    initial: number
    maximum: number
    shared: boolean
  }) => WasmMemory
}

export const wasm = (globalThis as unknown as { readonly WebAssembly: WebAssemblyApi }).WebAssembly

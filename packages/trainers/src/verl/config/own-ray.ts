const init = 'ray_kwargs.ray_init.'

/** Arguments of `ray.init` that describe a Ray of one's own. When it joins a cluster, it refuses them (ray 2.60, `_private/worker.py`). */
const refused = [
  'num_cpus',
  'num_gpus',
  'resources',
  'labels',
  'object_store_memory',
  '_system_config',
  '_enable_object_reconstruction',
  '_node_name',
]

/** Whether a key of verl describes the Ray that is started for it. Such a key is not allowed when a cluster is joined. */
export function isOwnRayKey(path: string): boolean {
  return path.startsWith(init) && refused.includes(path.slice(init.length).split('.')[0] as string)
}

/** Overrides that are allowed when a cluster is joined. */
export function withoutOwnRay(overrides: readonly string[]): string[] {
  return overrides.filter((each) => !isOwnRayKey(each.replace(/^[+~]+/, '').split('=')[0] as string))
}

/** The cluster that verl joins by `RAY_ADDRESS` or `ray_kwargs.ray_init.address`; `null` for a Ray of its own. */
export function clusterAddress(address: unknown): string | null {
  return typeof address === 'string' && address !== '' && address !== 'local' ? address : null
}

/** The metrics of a step by role, from those named `role/NAME/METRIC`. */
export function metricsByRole(metrics: Readonly<Record<string, number>>): Map<string, Record<string, number>> {
  const roles = new Map<string, Record<string, number>>()
  for (const [key, value] of Object.entries(metrics)) {
    // A role may have slashes in its name; a metric has none.
    const [, role, metric] = /^role\/(.+)\/([^/]+)$/s.exec(key) ?? []
    if (role !== undefined && metric !== undefined) roles.set(role, { ...roles.get(role), [metric]: value })
  }
  return roles
}

/** A model name as one segment of a path; undefined for names that servers read as other paths. */
export function pathSegment(model: string): string | undefined {
  if (model === '' || model === '.' || model === '..') return undefined
  try {
    return encodeURIComponent(model)
  } catch {
    // A lone surrogate.
    return undefined
  }
}

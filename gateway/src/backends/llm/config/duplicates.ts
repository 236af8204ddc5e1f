/** Reports each name that occurs earlier in the list, with its index. */
export function reportDuplicates(
  names: readonly string[],
  report: (index: number, name: string) => void,
): void {
  const seen = new Set<string>()
  for (const [index, name] of names.entries()) {
    if (seen.has(name)) report(index, name)
    seen.add(name)
  }
}

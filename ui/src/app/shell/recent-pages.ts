const maxPages = 5

let recent: readonly string[] = []

/** Notes the address of a page. Pages that create something do not count. */
export function notePage(path: string): void {
  if (path.endsWith('/new')) return
  recent = [path, ...recent.filter((other) => other !== path)].slice(0, maxPages + 1)
}

/** Addresses of pages before the current one, latest first. A reload forgets them. */
export function recentPaths(): readonly string[] {
  return recent.slice(1)
}

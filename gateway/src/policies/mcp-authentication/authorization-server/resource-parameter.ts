/**
 * Whether a `resource` parameter (RFC 8707 section 2) equals the resource. An absent parameter means the only
 * resource. A trailing slash is ignored: URL parsers of clients add it.
 */
export function isResource(parameter: string | undefined, resource: string): boolean {
  if (parameter === undefined) return true
  if (parameter.includes('#')) return false
  const asked = URL.parse(parameter)
  return asked !== null && plain(asked) === plain(new URL(resource))
}

function plain({ href, search }: URL): string {
  return search === '' ? href.replace(/\/+$/, '') : href
}

/**
 * Whether a `resource` parameter (RFC 8707 section 2) names the resource. An absent one stands for the only resource there
 * is. A slash at the end makes no difference: clients write addresses through their URL parser.
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
